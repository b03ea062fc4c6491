"""What an import of a document would change now: the same changes as that import, and nothing written."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from importer.app.request import again
from importer.engines import machine, registries
from importer.engines.install import Installed
from importer.memory import devices
from tests.commandline import BASE, CHAT, Desk, document, edit, receipt
from tests.hubserver import Fault, Repo
from tests.rechecking import WARM, imported, lines, one, paths
from tests.template_texts import CHATML_JSON, XML_PARAMETERS

pytestmark = pytest.mark.slow


def test_a_branch_that_moved_and_a_commit_that_stays(desk: Desk) -> None:
    imported(desk, "acme/base")
    old = desk.hub.repos["acme/base"].sha
    imported(desk, f"acme/base@{old}", "--name", "pinned")
    new = desk.hub.repos["acme/base"].commit(WARM)
    before = desk.files()
    ran = desk("recheck", "--json")
    found = lines(ran)
    assert (ran.code, desk.files()) == (1, before)
    assert {name: line["changed"] for name, line in found.items()} == {"base": True, "pinned": False}
    changes = {change["path"]: change for change in found["base"]["changes"]}
    assert (changes["importer.revision"]["before"], changes["importer.revision"]["after"]) == (old, new)
    assert changes["parameters.temperature"] == {
        "path": "parameters.temperature", "before": 0.6, "after": 0.7,
        "why": ["the vendor's generation_config.json says temperature: 0.7"],
    }  # fmt: skip
    assert desk("recheck", "base").out == (
        "base: an import would differ.\n"
        "  parameters.temperature: 0.6 → 0.7  (vendor: generation_config.json)\n"
        f'  importer.revision: "{old}" → "{new}"\n'
        "  again: importer acme/base --name base\n"
    )
    imported(desk, "acme/base")
    assert one(desk, 0, "base")["changed"] is False


@pytest.mark.parametrize(("name", "words"), [
    ("base-8xh100", ("--device", "8xH100", "--memory", "40GiB", "--per-device")),
    ("base-sglang", ("--backend", "sglang")),
])  # fmt: skip
def test_the_command_of_a_variant_finds_it(desk: Desk, name: str, words: tuple[str, ...]) -> None:
    imported(desk, "acme/base")
    imported(desk, "acme/base", *words)
    desk.hub.repos["acme/base"].commit(WARM)
    again = desk("recheck", name).out.splitlines()[-1].removeprefix("  again: ")
    assert f"{name}.yaml" in desk(*shlex.split(again)[1:], "--no-validate").err
    assert desk("recheck", name).code == 0, again


def test_the_changes_are_those_of_the_import(desk: Desk) -> None:
    imported(desk, "acme/base", "--set", "top_k=9")
    edit(desk, "top_p: 0.9", "top_p: 0.8")
    desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.7, "min_p": 0.1}})
    found, before = one(desk, 1), document(desk)
    again = desk("recheck").out.splitlines()[-1].removeprefix("  again: ")
    desk(*shlex.split(again)[1:], "--no-validate", "--on-conflict", "mine")
    after = document(desk)
    assert (after["parameters"]["top_k"], after["parameters"]["top_p"]) == (9, 0.8)
    for change in found["changes"]:
        head, _, rest = change["path"].partition(".")
        if head == "parameters":
            assert before["parameters"].get(rest) == change.get("before")
            assert after["parameters"].get(rest) == change.get("after")
    assert one(desk, 0)["changed"] is False


def test_a_tag_that_was_imported_is_followed(desk: Desk) -> None:
    repo = desk.hub.repos["acme/base"]
    repo.commit(BASE, "v1")
    imported(desk, "acme/base", "--revision", "v1")
    repo.commit(WARM)
    assert one(desk, 0)["changes"] == []
    repo.commit(WARM, "v1")
    assert "parameters.temperature" in paths(one(desk, 1))
    assert "again: importer acme/base --revision v1 --name base\n" in desk("recheck").out


def test_edits_stay_and_a_conflict_is_reported(desk: Desk) -> None:
    imported(desk, "acme/base")
    edit(desk, "temperature: 0.6", "temperature: 0.5")
    edit(desk, "top_p: 0.9", "top_p: 0.8")
    desk.hub.repos["acme/base"].commit(WARM)
    line = one(desk, 1)
    conflict = {"path": "parameters.temperature", "base": 0.6, "mine": 0.5, "theirs": 0.7}
    assert (line["conflicts"], paths(line)) == ([conflict], ["importer.revision"])
    assert {"path": "parameters.top_p", "before": 0.9, "after": 0.8} in line["edits"]
    text = desk("recheck").out
    assert "parameters.temperature: it was 0.6, the file says 0.5, this import says 0.7" in text
    assert "--on-conflict" in text
    imported(desk, "acme/base", "--on-conflict", "mine")
    assert (one(desk, 0)["changed"], document(desk)["parameters"]["temperature"]) == (False, 0.5)


# Another version of the engine


def test_another_version_of_the_engine_is_that_of_an_import(desk: Desk) -> None:
    desk.hub.repos["google/gemma-4-1b-it"] = Repo(CHAT)
    imported(desk, "google/gemma-4-1b-it", "--engine-version", "0.14.1")
    imported(desk, "acme/base", "--engine-version", "0.14.1")
    before = desk.files()
    ran = desk("recheck", "--engine-version", "0.32.0", "--json")
    found = lines(ran)
    assert (ran.code, desk.files()) == (1, before)
    gemma = {change["path"]: change.get("after") for change in found["gemma-4-1b-it"]["changes"]}
    assert gemma["options.tool_parser"] == "gemma4"
    assert not any(path.startswith("importer.engine") for path in gemma)  # it was asked for
    again = desk("recheck", "gemma-4-1b-it", "--engine-version", "0.32.0").out.splitlines()[-1]
    words = shlex.split(again.removeprefix("  again: "))
    assert words == [
        "importer",
        "google/gemma-4-1b-it",
        "--name",
        "gemma-4-1b-it",
        "--engine-version",
        "0.32.0",
    ]
    assert desk(*words[1:], "--no-validate").code == 0
    assert "tool_parser:gemma4" in document(desk, "gemma-4-1b-it")["options"]
    assert one(desk, 0, "gemma-4-1b-it")["changed"] is False
    assert one(desk, 0, "gemma-4-1b-it", "--engine-version", "0.32.0")["engine_version"] == "0.32.0"


def test_an_edit_that_the_version_refuses_needs_attention(desk: Desk) -> None:
    imported(desk, "acme/base", "--engine-version", "0.32.0")
    path = desk.folder / "models" / "base.yaml"
    path.write_text(path.read_text() + "engine_args:\n  speculative_config: {method: medusa}\n")
    assert one(desk, 0)["warnings"] == []
    [warning] = one(desk, 1, "--engine-version", "0.33.0")["warnings"]
    assert (warning["kind"], warning["key"]) == ("will-not-start", "engine_args.speculative_config.method")
    ran = desk("acme/base", "--engine-version", "0.33.0", "--no-validate", "--dry-run")
    assert f"Needs attention: {warning['key']}: " in ran.err


def test_documents_whose_engine_lacks_the_version_are_left_out(desk: Desk) -> None:
    imported(desk, "acme/base", "--backend", "mlx")
    ran = desk("recheck", "--engine-version", "0.33.0")
    assert (ran.code, ran.out[:21]) == (0, "base: left out: Inval")
    assert "the parsers of mlx 0.33.0 are not known here" in ran.out
    ran = desk("recheck", "--engine-version", "0.99")
    assert (ran.code, "only those of 0.14.1, 0.24.0, 0.25.0" in ran.err) == (2, True)


def test_a_parser_that_the_version_lacks(desk: Desk) -> None:
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.14.1")
    imported(desk, "acme/chat", "--set", "tool_parser=minimax")
    imported(
        desk, "acme/chat", "--engine-version", "0.14.1", "--name", "pinned", "--set", "tool_parser=minimax"
    )
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.32.0")
    found = lines(desk("recheck", "--json"))
    assert (found["chat"]["refused"]["kind"], found["pinned"]["changed"]) == ("unknown-parser", False)
    ran = desk("recheck", "chat")
    assert (ran.code, ran.out.startswith("chat: an import would be refused: vllm 0.32.0 has no tool")) == (
        1,
        True,
    )


# Another machine, other tables, other weights


SIZES = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 131072,
    "hidden_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8,
    "vocab_size": 32000, "intermediate_size": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_a_machine_with_less_memory(desk: Desk) -> None:
    def has(gib: int) -> None:
        found = devices.of_kind("cpu", "this machine", gib * 2**30)
        desk.monkeypatch.setattr(machine, "this_machine", lambda *_, **__: found)

    desk.hub.repos["acme/sized"] = Repo({**BASE, "config.json": SIZES})
    has(64)
    imported(desk, "acme/sized", "--device", "this-machine")
    imported(desk, "acme/sized", "--memory", "64GB", "--name", "named")
    assert desk("recheck").code == 0
    has(4)
    found = lines(desk("recheck", "--json"))
    assert (found["named"]["changed"], found["sized"]["changed"]) == (False, True)
    length = next(change for change in found["sized"]["changes"] if change["path"] == "max_model_len")
    assert 0 < length["after"] < length["before"] == 131072
    desk.hub.repos["acme/sized"].commit({**WARM, "config.json": SIZES})
    again = desk("recheck", "named").out.splitlines()[-1].removeprefix("  again: ")
    assert desk(*shlex.split(again)[1:], "--no-validate").code == 0
    assert receipt(desk, "named")["request"]["memory"] == 64 * 10**9
    assert desk("recheck", "named").code == 0


def test_weights_with_other_digests(desk: Desk) -> None:
    desk.hub.repos["acme/heavy"] = Repo({**CHAT, "model.safetensors": b"\x02" + bytes(7) + b"{}"})
    imported(desk, "acme/heavy")
    assert one(desk, 0)["weights"] == []
    path = desk.folder / "models" / "heavy.receipt.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "weights": {"model.safetensors": "0" * 64}}))
    assert one(desk, 1)["weights"] == ["model.safetensors"]
    assert "  other weights: model.safetensors\n" in desk("recheck").out


# What cannot be checked, or not be imported


def test_each_document_is_answered_whatever_the_others_are(desk: Desk) -> None:
    for reference in ("acme/base", "other/base", "acme/chat"):
        imported(desk, reference)
    desk.directory("toy", BASE)
    imported(desk, "./toy")
    del desk.hub.repos["acme/chat"]
    (desk.folder / "toy").rename(desk.folder / "gone")
    (desk.folder / "models" / "broken.yaml").write_text("a: [")
    (desk.folder / "models" / "other--base.receipt.json").write_text("{")
    before = desk.files()
    ran = desk("recheck", "--json")
    found = lines(ran)
    kinds = {name: line.get("error", {}).get("kind") for name, line in found.items()}
    assert kinds == {
        "base": None, "broken": "invalid", "chat": "private", "other--base": "no-receipt",
        "toy": "no-such-directory",
    }  # fmt: skip
    assert (ran.code, list(found), desk.files()) == (5, sorted(found), before)
    assert "chat: not checked: acme/chat is private or missing" in desk("recheck", "chat").out
    assert desk("recheck", "chat").code == 3
    assert desk("recheck", "nobody").code == 5
    assert desk("recheck", "base", "base").out == "base: nothing would change.\n"


def test_a_receipt_whose_base_cannot_be_read(desk: Desk) -> None:
    imported(desk, "acme/base")
    path = desk.folder / "models" / "base.receipt.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base": "{"}))
    error = one(desk, 5)["error"]
    assert (error["kind"], "its base cannot be read" in error["message"]) == ("no-receipt", True)


def moved(desk: Desk) -> None:
    desk.hub.repos["acme/new"] = desk.hub.repos["acme/base"]
    desk.hub.faults.append(Fault("/api/models/acme/base", 307, {"Location": "/api/models/acme/new"}, times=9))


def without_weights(desk: Desk) -> None:
    desk.hub.repos["acme/base"].commit({"model.gguf": b"GGUF"})


@pytest.mark.parametrize(
    ("happens", "kind"), [(without_weights, "gguf-only"), (moved, "exists")], ids=["gguf", "renamed"]
)
def test_a_repository_that_cannot_be_imported_again(
    desk: Desk, happens: Callable[[Desk], None], kind: str
) -> None:
    imported(desk, "acme/base")
    happens(desk)
    assert one(desk, 1)["refused"]["kind"] == kind


def test_a_directory_is_found_from_anywhere(desk: Desk) -> None:
    folder = desk.directory("toy", BASE)
    imported(desk, "./toy")
    (desk.folder / "elsewhere").mkdir()
    desk.monkeypatch.chdir(desk.folder / "elsewhere")
    models = desk.folder / "models"
    assert desk("recheck", "--dir", models).code == 0
    (folder / "generation_config.json").write_text('{"temperature": 0.1}')
    found = lines(desk("recheck", "--dir", models, "--json"))["toy"]
    assert next(c for c in found["changes"] if c["path"] == "parameters.temperature")["after"] == 0.1


def test_offline_asks_nobody_and_else_one_request_each(desk: Desk) -> None:
    imported(desk, "acme/base")
    imported(desk, "other/base")
    asked = desk.hub.asked
    assert desk("recheck").code == 0
    assert desk.hub.asked - asked == 2
    desk.hub.repos["acme/base"].commit(WARM)
    asked = desk.hub.asked
    assert one(desk, 0, "base", "--offline")["changed"] is False
    assert desk.hub.asked == asked
    for path in sorted((desk.folder / "home" / "cache" / "hub").rglob("*.json")):
        path.unlink()
    assert one(desk, 3, "base", "--offline")["error"]["kind"] == "not-cached"
    assert Path("models/base.yaml").is_file()


# With an engine's own parsers


@pytest.mark.engine
def test_a_template_that_the_parser_no_longer_reads(desk: Desk, mlx_engine: Installed) -> None:
    """Decided by proof, it would be another parser; set by a person, a warning would stand beside it."""
    desk.monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    files = {**BASE, "chat_template.jinja": CHATML_JSON}
    desk.hub.repos["acme/calls"] = Repo(files)
    imported(desk, "acme/calls", "--backend", "mlx")
    imported(desk, "acme/calls", "--backend", "mlx", "--set", "tool_parser=json_tools", "--name", "mine")
    assert desk("recheck").code == 0
    desk.hub.repos["acme/calls"].commit({**files, "chat_template.jinja": XML_PARAMETERS})
    found = lines(desk("recheck", "--json"))
    decided = next(c for c in found["calls"]["changes"] if c["path"] == "options.tool_parser")
    assert (decided["before"], decided["after"]) == ("json_tools", "qwen3_coder")
    [warning] = found["mine"]["warnings"]
    assert (warning["kind"], warning["key"]) == ("parser", "tool_parser")
    assert "Needs attention: tool_parser: " in desk("recheck", "mine").out
    desk.monkeypatch.delenv("IMPORTER_MLX_PYTHON")
    ran = desk("recheck", "calls")
    assert "1 document had a proof of the engine's parsers and would have none" in ran.err


def test_a_measurement_is_no_option_of_the_command() -> None:
    request = {"reference": "a/b", "measured": {"engine": "vllm"}, "adapter": ["c/d", "e=f/g"]}
    assert again(request) == "importer a/b --adapter c/d --adapter e=f/g"
