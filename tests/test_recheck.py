"""Recheck: which documents an import now would alter, how and why, what of it a person has covered."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.document import schema
from importer.engines import machine, registries
from importer.engines.environment import Installed
from importer.evidence import tables
from importer.fit import devices
from tests.commandline import BASE, CHAT, Desk, Ran, desk
from tests.hubserver import Fault, Repo
from tests.template_texts import CHATML_JSON, XML_PARAMETERS
from tests.test_cli import document, edit, receipt

__all__ = ["desk"]
WARM = {**BASE, "generation_config.json": {"temperature": 0.7, "top_p": 0.9}}


def lines(ran: Ran) -> dict[str, dict[str, Any]]:
    """Each document's line of --json, by name."""
    found = {line["name"]: line for line in map(json.loads, ran.out.splitlines())}
    for line in found.values():
        schema.check("recheck", line, "stdout")
    return found


def one(desk: Desk, code: int, *words: str) -> dict[str, Any]:
    ran = desk("recheck", "--json", *words)
    assert ran.code == code, ran.out + ran.err
    [line] = lines(ran).values()
    return line


def imported(desk: Desk, *words: str) -> None:
    assert desk(*words, "--no-validate").code == 0


def test_nothing_moved(desk: Desk) -> None:
    imported(desk, "acme/base")
    imported(desk, "acme/chat")
    before = desk.files()
    ran = desk("recheck")
    assert (ran.code, ran.out) == (0, "base: nothing would change.\nchat: nothing would change.\n")
    assert one(desk, 0, "base") == {
        "schema": 1, "name": "base", "model": "acme/base", "changed": False, "causes": [], "decisions": [],
        "document": [], "conflicts": [], "refused": None,
    }  # fmt: skip
    assert desk.files() == before


def test_a_branch_that_moved(desk: Desk) -> None:
    imported(desk, "acme/base")
    imported(desk, "acme/base@main", "--name", "twin")
    old = desk.hub.repos["acme/base"].sha
    imported(desk, f"acme/base@{old}", "--name", "pinned")
    new = desk.hub.repos["acme/base"].commit(WARM)
    before = desk.files()
    ran = desk("recheck", "--json")
    found = lines(ran)
    assert (ran.code, desk.files()) == (1, before)
    assert {name: line["changed"] for name, line in found.items()} == {
        "base": True,
        "pinned": False,
        "twin": True,
    }
    line = found["base"]
    assert line["causes"] == [{"what": "commit", "before": old, "after": new}]
    why = "generation_config.json now says temperature: 0.7; it said temperature: 0.6"
    assert line["decisions"] == [
        {"key": "parameters.temperature", "before": 0.6, "after": 0.7, "why": [why], "covered": False}
    ]
    revision = next(c for c in line["document"] if c["path"] == "importer.revision")
    assert (revision["before"], revision["after"], revision["covered"]) == (old, new, False)
    text = desk("recheck", "base").out
    assert text == (
        f"base: 1 decision would change.\n  commit: {old} → {new}\n  parameters.temperature: 0.6 → 0.7\n"
        f"      {why}\n  again: importer acme/base\n"
    )
    imported(desk, "acme/base")
    assert one(desk, 0, "base")["changed"] is False


def test_a_tag_that_was_imported_is_followed(desk: Desk) -> None:
    repo = desk.hub.repos["acme/base"]
    repo.commit(BASE, "v1")
    imported(desk, "acme/base", "--revision", "v1")
    repo.commit(WARM)
    assert one(desk, 0)["causes"] == []
    repo.commit(WARM, "v1")
    assert one(desk, 1)["decisions"][0]["after"] == 0.7
    assert "again: importer acme/base --revision v1\n" in desk("recheck").out


def test_a_commit_that_changes_no_decision(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit({**BASE, "LICENSE": "x"})
    line = one(desk, 1)
    assert (line["changed"], line["decisions"]) == (True, [])
    assert "base: no decision would change, but what is written of them.\n  commit: " in desk("recheck").out


def test_what_a_person_wrote_over_it_is_told(desk: Desk) -> None:
    imported(desk, "acme/base")
    edit(desk, "temperature: 0.6", "temperature: 0.5")
    edit(desk, "max_model_len: 512", "")
    desk.hub.repos["acme/base"].commit(
        {**WARM, "config.json": {**BASE["config.json"], "max_position_embeddings": 1024}}  # type: ignore[dict-item]
    )
    found = {d["key"]: d for d in one(desk, 1)["decisions"]}
    assert (found["parameters.temperature"]["covered"], found["parameters.temperature"]["yours"]) == (
        True,
        0.5,
    )
    assert found["max_model_len"]["covered"] is True
    assert "yours" not in found["max_model_len"]
    assert [c["path"] for c in one(desk, 1)["conflicts"]] == ["parameters.temperature", "max_model_len"]
    text = desk("recheck").out
    assert (
        "conflict: parameters.temperature: it was 0.6, the file says 0.5, this import says 0.7; --take"
        in text
    )
    assert "      yours: 0.5\n" in text
    assert "      yours: absent\n" in text


def test_an_edit_that_an_import_leaves_alone_is_no_conflict(desk: Desk) -> None:
    imported(desk, "acme/base")
    edit(desk, "temperature: 0.6", "temperature: 0.7")
    edit(desk, "top_p: 0.9", "top_p: 0.8")
    desk.hub.repos["acme/base"].commit(WARM)
    line = one(desk, 1)
    assert (line["conflicts"], line["decisions"][0]["yours"]) == ([], 0.7)
    imported(desk, "acme/base")
    assert (one(desk, 0)["changed"], document(desk)["parameters"]["top_p"]) == (False, 0.8)


def test_a_backend_that_a_person_wrote_is_decided_for(desk: Desk) -> None:
    imported(desk, "acme/base")
    edit(desk, "backend: vllm", "backend: mlx")
    line = one(desk, 1)
    assert {"what": "backend", "before": "vllm", "after": "mlx"} in line["causes"]
    assert line["conflicts"] == []


def test_facts_that_come_and_go(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.6, "min_p": 0.1}})
    found = {d["key"]: d for d in one(desk, 1)["decisions"]}
    assert found["parameters.min_p"]["why"] == ["new: the vendor's generation_config.json says min_p: 0.1"]
    assert found["parameters.top_p"]["why"] == [
        "no longer: the vendor's generation_config.json says top_p: 0.9"
    ]
    assert (found["parameters.top_p"]["before"], found["parameters.top_p"]["after"]) == (0.9, None)


def test_what_the_user_set_is_asked_for_again(desk: Desk) -> None:
    imported(desk, "acme/base", "--set", "temperature=0", "--set", "tool_parser=hermes", "--name", "mine")
    desk.hub.repos["acme/base"].commit(WARM)
    assert one(desk, 1)["decisions"] == []
    again = desk("recheck").out.splitlines()[-1].removeprefix("  again: ")
    words = shlex.split(again)[1:]
    assert words[:1] == ["acme/base"]
    assert desk(*words, "--no-validate").code == 0
    assert (document(desk, "mine")["parameters"]["temperature"], one(desk, 0)["changed"]) == (0, False)


# Another engine


def test_a_parser_that_the_new_version_has(desk: Desk) -> None:
    desk.hub.repos["google/gemma-4-1b-it"] = Repo(CHAT)
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.14.1")
    imported(desk, "google/gemma-4-1b-it")
    assert one(desk, 0)["changed"] is False
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.32.0")
    line = one(desk, 1)
    assert line["causes"] == [{"what": "engine", "before": "0.14.1", "after": "0.32.0"}]
    found = {d["key"]: d for d in line["decisions"]}
    assert (found["tool_parser"]["before"], found["tool_parser"]["after"]) == (None, "gemma4")
    assert found["tool_parser"]["why"] == [
        "vllm 0.32.0 has the tool parser gemma4, which vllm 0.14.1 has not"
    ]


def test_a_parser_that_the_new_version_lacks(desk: Desk) -> None:
    desk.hub.repos["acme/old"] = Repo({**CHAT, "config.json": {"model_type": "llama"}})
    row = tables.Row("old", {"tool_parser": "minimax"}, source="x")
    desk.monkeypatch.setattr(tables, "shipped", lambda: tables.Table((row,)))
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.14.1")
    imported(desk, "acme/old")
    imported(desk, "acme/chat", "--set", "tool_parser=minimax")
    imported(
        desk, "acme/chat", "--engine-version", "0.14.1", "--name", "pinned", "--set", "tool_parser=minimax"
    )
    desk.monkeypatch.setitem(registries.PINNED, "vllm", "0.32.0")
    ran = desk("recheck", "--json")
    found = lines(ran)
    assert ran.code == 1
    assert found["old"]["decisions"][0]["before"] == "minimax"
    assert found["old"]["decisions"][0]["why"] == ["vllm 0.32.0 has no tool parser named minimax"]
    refused = found["chat"]["refused"]
    assert (refused["kind"], found["chat"]["changed"]) == ("unknown-parser", True)
    assert "vllm 0.32.0 has no tool parser named 'minimax'" in refused["message"]
    assert found["pinned"]["changed"] is False
    assert (
        "chat: it would not be imported again.\n  vllm 0.32.0 has no tool parser"
        in desk("recheck", "chat").out
    )


def test_an_engine_that_was_installed_in_another_version(desk: Desk) -> None:
    desk.engine(version="0.31.3")
    imported(desk, "acme/base", "--backend", "mlx")
    metadata = next((desk.folder / "site").glob("*.dist-info"))
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: mlx-lm\nVersion: 0.32.2\n")
    line = one(desk, 1)
    assert line["causes"] == [{"what": "engine", "before": "0.31.3", "after": "0.32.2"}]
    assert (line["decisions"], [c["path"] for c in line["document"]]) == ([], ["importer.engine.version"])
    assert "again: importer acme/base\n" in desk("recheck").out  # the backend is remembered


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
    imported(desk, "acme/sized")
    imported(desk, "acme/sized", "--memory", "64GB", "--name", "named")
    assert desk("recheck").code == 0
    has(4)
    found = lines(desk("recheck", "--json"))
    assert (found["named"]["changed"], found["sized"]["changed"]) == (False, True)
    [cause] = found["sized"]["causes"]
    had, has_now = "1 × this machine with 64.0 GiB", "1 × this machine with 4.0 GiB"
    assert cause == {"what": "device", "before": had, "after": has_now}
    length = next(d for d in found["sized"]["decisions"] if d["key"] == "max_model_len")
    assert 0 < length["after"] < length["before"] == 131072
    assert length["why"]
    desk.hub.repos["acme/sized"].commit({**WARM, "config.json": SIZES})
    again = desk("recheck", "named").out.splitlines()[-1].removeprefix("  again: ")
    assert desk(*shlex.split(again)[1:], "--no-validate").code == 0
    assert receipt(desk, "named")["request"]["memory"] == 64 * 10**9
    assert desk("recheck", "named").code == 0


# Other tables, other code


def other_table(desk: Desk) -> None:
    """From now on the families that had hermes have qwen3_xml."""
    rows = [
        replace(row, parsers={**row.parsers, "tool_parser": "qwen3_xml"})
        if row.parsers.get("tool_parser") == "hermes"
        else row
        for row in tables.shipped().rows
    ]
    desk.monkeypatch.setattr(tables, "shipped", lambda: tables.Table(tuple(rows)))


def test_a_table_that_says_otherwise(desk: Desk) -> None:
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo(CHAT)
    imported(desk, "Qwen/Qwen3-8B")
    other_table(desk)
    [found] = one(desk, 1)["decisions"]
    assert (found["key"], found["before"], found["after"]) == ("tool_parser", "hermes", "qwen3_xml")
    assert found["why"] == ['parser_defaults.json now says "qwen3_xml"; it said "hermes"']


def test_an_edit_of_options_covers_the_key_that_was_edited(desk: Desk) -> None:
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo(CHAT)
    imported(desk, "Qwen/Qwen3-8B")
    other_table(desk)
    path = desk.folder / "models" / "qwen3-8b.yaml"
    said = path.read_text()
    [tool, reasoning] = [n for n in said.splitlines() if n.startswith("- ") and "_parser:" in n]
    path.write_text(said.replace(f"{tool}\n{reasoning}\n", f"{reasoning}\n{tool}\n"))
    assert [d["covered"] for d in one(desk, 1)["decisions"]] == [False]
    path.write_text(said.replace(tool, "- tool_parser:mine"))
    [found] = one(desk, 1)["decisions"]
    assert (found["covered"], found["yours"]) == (True, "mine")


def test_code_that_weighs_otherwise(desk: Desk) -> None:
    imported(desk, "acme/base")
    path = desk.folder / "models" / "base.receipt.json"
    data = json.loads(path.read_text()) | {"importer": "0.0.1"}
    data["decisions"]["parameters.temperature"]["value"] = 0.9
    path.write_text(json.dumps(data))
    line = one(desk, 1)
    assert line["causes"][0]["what"] == "importer"
    assert "weighs the same evidence otherwise than 0.0.1 did" in line["decisions"][0]["why"][0]


# What cannot be checked


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


def test_an_empty_folder(desk: Desk) -> None:
    assert desk("recheck") == Ran(0, "", "")


def test_a_receipt_that_does_not_say_what_was_asked(desk: Desk) -> None:
    imported(desk, "acme/base")
    path = desk.folder / "models" / "base.receipt.json"
    data = json.loads(path.read_text())
    del data["request"]
    path.write_text(json.dumps(data))
    error = one(desk, 5)["error"]
    assert (error["kind"], "does not say what was asked for" in error["message"]) == ("no-receipt", True)


def test_a_repository_that_is_no_model_any_more(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit({"model.gguf": b"GGUF"})
    assert one(desk, 1)["refused"]["kind"] == "gguf-only"


def test_a_directory_is_found_from_anywhere(desk: Desk) -> None:
    folder = desk.directory("toy", BASE)
    imported(desk, "./toy")
    (desk.folder / "elsewhere").mkdir()
    desk.monkeypatch.chdir(desk.folder / "elsewhere")
    ran = desk("recheck", "--output", desk.folder / "models", "--json")
    assert (ran.code, lines(ran)["toy"]["document"]) == (0, [])
    (folder / "generation_config.json").write_text('{"temperature": 0.1}')
    ran = desk("recheck", "--output", desk.folder / "models", "--json")
    assert (ran.code, lines(ran)["toy"]["decisions"][0]["after"]) == (1, 0.1)


def test_offline_asks_nobody(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.repos["acme/base"].commit(WARM)
    asked = desk.hub.asked
    assert one(desk, 0, "--offline")["changed"] is False
    assert desk.hub.asked == asked
    for path in sorted((desk.folder / "home" / "cache" / "hub").rglob("*.json")):
        path.unlink()
    assert one(desk, 3, "--offline")["error"]["kind"] == "not-cached"


@pytest.mark.slow
def test_the_hubs_limit_is_waited_for(desk: Desk) -> None:
    imported(desk, "acme/base")
    desk.hub.faults.append(Fault("/api/models/acme/base", 429, {"Retry-After": "1"}, times=4))
    assert one(desk, 0)["changed"] is False


def test_one_request_for_each_that_stayed_as_it_was(desk: Desk) -> None:
    imported(desk, "acme/base")
    imported(desk, "other/base")
    asked = desk.hub.asked
    assert desk("recheck").code == 0
    assert desk.hub.asked - asked == 2
    assert receipt(desk)["request"]["reference"] == "acme/base"
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
    assert receipt(desk, "calls")["decisions"]["tool_parser"]["value"] == "json_tools"
    desk.hub.repos["acme/calls"].commit({**files, "chat_template.jinja": XML_PARAMETERS})
    ran = desk("recheck", "--json")
    found = lines(ran)
    assert ran.code == 1
    decided = next(d for d in found["calls"]["decisions"] if d["key"] == "tool_parser")
    assert (decided["before"], decided["after"]) == ("json_tools", "qwen3_coder")
    assert decided["why"][0].startswith("mlx 0.32.2 does not read the template with json_tools: one-call: ")
    mine = next(d for d in found["mine"]["decisions"] if d["key"] == "tool_parser")
    assert (mine["before"], mine["after"]) == ("json_tools", "json_tools")
    assert mine["why"][0].startswith("warning: the proof refutes it: ")
    assert 'tool_parser: "json_tools", with a warning' in desk("recheck", "mine").out


@pytest.mark.engine
def test_an_engine_that_is_gone_costs_the_proof_only(desk: Desk, mlx_engine: Installed) -> None:
    desk.monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    row = tables.Row("calls", {"tool_parser": "mistral"})
    desk.monkeypatch.setattr(tables, "shipped", lambda: tables.Table((row,)))
    desk.hub.repos["acme/calls"] = Repo({**BASE, "chat_template.jinja": CHATML_JSON})
    imported(desk, "acme/calls", "--backend", "mlx")
    desk.monkeypatch.delenv("IMPORTER_MLX_PYTHON")
    found = {d["key"]: d for d in one(desk, 1)["decisions"]}
    assert found["tool_parser"]["before"] == "json_tools"
    assert found["tool_parser"]["why"][0].startswith("not proved: 'importer engine install mlx'")
