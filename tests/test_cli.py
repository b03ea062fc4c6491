"""The command line's contract: the JSON line, every option, the small commands, re-imports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer import __version__
from importer.cli.arguments import COMMANDS
from importer.document import schema
from tests.commandline import BASE, CHAT, REPO, TOKEN, Desk, desk
from tests.hubserver import Repo

__all__ = ["desk"]
HEAVY = {"huggingface_hub", "jinja2", "rich", "jsonschema", "yaml", "httpx", "httpx2"}


def load(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def document(desk: Desk, name: str = "base") -> Any:
    data = load(desk.folder / "models" / f"{name}.yaml")
    schema.check("document", data, name)
    return data


def receipt(desk: Desk, name: str = "base") -> Any:
    data = load(desk.folder / "models" / f"{name}.receipt.json")
    schema.check("receipt", data, name)
    return data


# The line of --json


def test_the_line_of_a_hub_import(desk: Desk) -> None:
    reference = f"{desk.hub.url}/acme/chat/tree/main?x=1"
    ran = desk(reference, "--json")
    line = ran.line
    assert ran.code == 0
    assert list(line) == [
        "schema", "reference", "model_id", "revision", "name", "path", "document", "decisions",
    ]  # fmt: skip
    assert line["reference"] == reference
    assert (line["model_id"], line["revision"]) == ("acme/chat", desk.hub.repos["acme/chat"].sha)
    assert (line["name"], line["path"]) == ("chat", "models/chat.yaml")
    assert line["document"] == document(desk, "chat")
    assert line["decisions"] == receipt(desk, "chat")["decisions"]
    assert line["decisions"]["kind"]["value"] == "chat"
    for parser in ("tool_parser", "reasoning_parser"):
        decision = line["decisions"][parser]
        assert (decision["value"] is None) == (decision["status"] in ("none", "abstained"))
        assert decision["why"]


def test_the_line_of_a_directory(desk: Desk) -> None:
    desk.directory("My Model", BASE)
    line = desk("./My Model/", "--json").line
    assert (line["reference"], line["model_id"], line["revision"]) == ("./My Model/", None, None)
    assert (line["name"], line["path"]) == ("my-model", "models/my-model.yaml")
    assert line["document"]["parameters"]["model"] == str(desk.folder / "My Model")
    assert receipt(desk, "my-model")["directory"] == str(desk.folder / "My Model")


@pytest.mark.parametrize("text", ["模型/名", "a/\x85b", "a/\u2028b", "a/b\nc", " acme/base ", "-"])
def test_the_reference_is_verbatim_and_the_line_is_one(desk: Desk, text: str) -> None:
    ran = desk(text, "--json", "--dry-run")
    assert ran.line["reference"] == text
    assert ran.out.isascii() or ran.out.strip("\n").isprintable()


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (("--json",), None),
        (("--json", "--name", "x", "acme/base", "--bogus"), "acme/base"),
        (("--set", "acme/x=1", "acme/base", "--json", "--backend", "tpu"), "acme/base"),
        (("--json", "--", "-x/y"), "-x/y"),
        (("--json", "acme/base", "other/base"), "acme/base"),
        (("--json", "acme/base", "--name"), "acme/base"),
    ],
)
def test_the_reference_is_told_where_the_rest_makes_no_sense(
    desk: Desk, words: tuple[str, ...], reference: str | None
) -> None:
    ran = desk(*words)
    assert (ran.code, ran.line["reference"]) == (2, reference)


def test_stdout_carries_the_result_only(desk: Desk) -> None:
    ran = desk("acme/base", "--json", "--explain")
    assert ran.line["name"] == "base"
    assert "generation-config" in ran.err
    assert "Wrote models/base.yaml; review: pending." in ran.err
    plain = desk("acme/base", "--dry-run")
    assert "parameters.temperature" in plain.out
    assert "nothing was written" in plain.err
    assert "\x1b" not in plain.out + plain.err + ran.err


# Options


def test_dry_run_writes_nothing(desk: Desk) -> None:
    desk("acme/base", "--dry-run", "--json", "--yes", "--output", "elsewhere/deep")
    assert [p.name for p in desk.folder.iterdir() if p.name not in ("home", "hf")] == []


def test_output_and_name(desk: Desk) -> None:
    ran = desk("acme/base", "--json", "--output", "a/b", "--name", "my_1.5")
    assert ran.line["path"] == "a/b/my_1.5.yaml"
    assert (desk.folder / ran.line["path"]).is_file()
    assert (desk.folder / "a" / "b" / ".importer" / "document.schema.json").is_file()
    first = (desk.folder / "a/b/my_1.5.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=.importer/document.schema.json"


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", "-", "a..b", "é", "x" * 129, ".hidden", "a\n"])
def test_names_that_are_no_file_names(desk: Desk, name: str) -> None:
    ran = desk("acme/base", f"--name={name}", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (2, "bad-option")


@pytest.mark.parametrize("backend", ["vllm", "mlx", "mlx-vlm", "vllm-mlx"])
def test_every_backend(desk: Desk, backend: str) -> None:
    ran = desk("acme/base", "--backend", backend, "--json")
    assert ran.code == 0, ran.err
    decision = ran.line["decisions"]["backend"]
    assert (decision["value"], decision["status"]) == (backend, "user")
    assert document(desk)["backend"] == backend
    assert "Not validated: " in ran.err


def test_the_automatic_backend_is_not_the_users(desk: Desk) -> None:
    line = desk("acme/base", "--backend", "auto", "--dry-run", "--json").line
    assert line["decisions"]["backend"]["status"] != "user"


def test_revisions(desk: Desk) -> None:
    repo = desk.hub.repos["acme/base"]
    first = repo.sha
    second = repo.commit({**BASE, "generation_config.json": {"temperature": 0}}, "v2")
    for words, commit in (
        (("acme/base",), first),
        (("acme/base@v2",), second),
        (("acme/base", "--revision", "v2"), second),
        (("acme/base@v2", "--revision", "v2"), second),
        ((f"acme/base@{second}",), second),
        (("hf://acme/base@v2",), second),
        ((f"{desk.hub.url}/acme/base/blob/v2/config.json",), second),
    ):
        assert desk(*words, "--dry-run", "--json").line["revision"] == commit
    assert desk("acme/base@v2", "--dry-run", "--json").line["document"]["parameters"]["temperature"] == 0


SETTINGS: list[tuple[str, tuple[str, ...], Any]] = [
    ("temperature=0", ("parameters", "temperature"), 0),
    ("parameters.temperature=1e-1", ("parameters", "temperature"), 0.1),
    ("parameters.ignore_eos=true", ("parameters", "ignore_eos"), True),
    ("max_model_len=2048", ("max_model_len",), 2048),
    ("dtype=bfloat16", ("dtype",), "bfloat16"),
    ("dtype=2024-01-01", ("dtype",), "2024-01-01"),
    ('stopwords=["</s>", "a: b"]', ("stopwords",), ["</s>", "a: b"]),
    ("stopwords=[a, b]", ("stopwords",), ["a", "b"]),
    ("engine_args.a.b=[1, {c: null}]", ("engine_args", "a", "b"), [1, {"c": None}]),
    ("chat_template_kwargs={enable_thinking: false}", ("chat_template_kwargs",), {"enable_thinking": False}),
    ("system_prompt=two\nlines: 2", ("system_prompt",), "two\nlines: 2"),
    ("system_prompt=你好=x", ("system_prompt",), "你好=x"),
    ('reasoning_effort="no"', ("reasoning_effort",), "no"),
    ("tool_parser=hermes", ("options",), ["tool_parser:hermes"]),
    ("kind=chat", ("known_usecases",), ["chat"]),
]


@pytest.mark.parametrize(("setting", "path", "value"), SETTINGS, ids=[s[0] for s in SETTINGS])
def test_set(desk: Desk, setting: str, path: tuple[str, ...], value: Any) -> None:
    line = desk("acme/base", "--set", "kind=chat", "--set", setting, "--dry-run", "--json").line
    found: Any = line["document"]
    schema.check("document", found, setting)
    for step in path:
        found = found[step]
    assert found == value
    key = setting.partition("=")[0]
    decision = line["decisions"]["parameters.temperature" if key == "temperature" else key]
    assert (decision["status"], decision["why"][0]) == ("user", "set by the user")


@pytest.mark.parametrize(
    "setting", ["temperature=null", "temperature=", "tool_parser=none", "tool_parser=null"]
)
def test_set_to_none(desk: Desk, setting: str) -> None:
    line = desk("acme/base", "--set", setting, "--dry-run", "--json").line
    schema.check("document", line["document"], setting)
    key = "parameters.temperature" if "temp" in setting else "tool_parser"
    decision = line["decisions"][key]
    assert (decision["value"], decision["status"], decision["why"]) == (None, "none", ["set by the user"])
    assert "temperature" not in line["document"]["parameters"] or "temp" not in setting
    assert "options" not in line["document"]


def test_none_stays_none_though_the_models_file_has_a_value(desk: Desk) -> None:
    line = desk("acme/base", "--set", "temperature=null", "--dry-run", "--json").line
    assert line["document"]["importer"]["unset"] == ["temperature"]
    assert [o["value"] for o in line["decisions"]["parameters.temperature"]["overruled"]] == [0.6]


def test_the_card_is_heard_after_the_file_and_hidden_with_the_name(desk: Desk) -> None:
    desk.directory(
        "thing", BASE | {"README.md": "# Thing\nWe recommend `temperature=1.1` and `min_p=0.02`.\n"}
    )
    told = desk("./thing", "--dry-run", "--json").line["decisions"]
    assert (told["parameters.min_p"]["value"], told["parameters.min_p"]["status"]) == (0.02, "vendor")
    assert told["parameters.temperature"]["value"] == 0.6
    assert [o["source"] for o in told["parameters.temperature"]["overruled"]] == ["README.md"]
    explained = desk("./thing", "--dry-run", "--explain")
    assert "We recommend temperature=1.1 and min_p=0.02." in explained.err
    hidden = desk("./thing", "--dry-run", "--json", "--ignore-name").line["decisions"]
    assert "parameters.min_p" not in hidden


def test_what_the_user_overrules_is_shown(desk: Desk) -> None:
    line = desk("acme/base", "--set", "temperature=0", "--dry-run", "--json").line
    assert [o["value"] for o in line["decisions"]["parameters.temperature"]["overruled"]] == [0.6]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("temperature=abc", "'abc' is not of type 'number'"),
        ("temperature=.nan", "not of type 'number'"),
        ("parameters.temprature=1", "near names: temperature"),
        ("parameters.temperature.x=1", "not of type 'number'"),
        ("parameters=1", "not set this way"),
        ("parameters.model=x/y", "not set this way"),
        ("importer.x=1", "not set this way"),
        ("name=x", "not set this way"),
        ("options=[a]", "not set this way"),
        ("tool_parser.x=1", "no document has the key 'tool_parser.x'"),
        ("tool_parser=[a]", "a parser is a name, or none"),
        ("kind=[chat]", "it is one of chat, base"),
        ("backend=tpu", "it is one of vllm, mlx"),
        ("family=[a]", "not of type 'string'"),
        ("engine_args..x=1", "empty step"),
        ("=1", "the form key=value"),
        ("temperature", "the form key=value"),
        ("description=\x1b[31m", "control characters"),
        ("description=\udcff", "control characters"),
        ("engine_args=" + "[" * 900, "not of type 'object'"),
    ],
)
def test_set_nonsense(desk: Desk, setting: str, says: str) -> None:
    ran = desk("acme/base", "--set", setting, "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (2, "bad-option")
    assert says in ran.line["error"]["message"]
    assert desk.files() == {}


def test_engine_version(desk: Desk) -> None:
    line = desk("acme/chat", "--engine-version", "0.14.1", "--dry-run", "--json").line
    assert line["document"]["importer"]["engine"] == {"name": "vllm", "version": "0.14.1"}
    ran = desk("acme/chat", "--engine-version", "0.14.1", "--set", "tool_parser=gemma4", "--json")
    assert ran.line["error"]["kind"] == "unknown-parser"
    assert desk("acme/chat", "--engine-version", "99", "--json").line["error"]["kind"] == "bad-option"


def test_offline_uses_what_was_fetched(desk: Desk) -> None:
    first = desk("acme/base", "--dry-run", "--json").line
    asked = desk.hub.asked
    assert desk("acme/base", "--dry-run", "--json", "--offline").line == first
    desk.monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert desk("acme/base", "--dry-run", "--json").line == first
    assert desk.hub.asked == asked


def test_the_token_opens_what_it_may(desk: Desk) -> None:
    desk.hub.repos["acme/hidden"] = Repo(BASE, private=True, readers=(TOKEN,))
    desk.monkeypatch.setenv("HF_TOKEN", TOKEN)
    ran = desk("acme/hidden", "--json")
    assert ran.line["model_id"] == "acme/hidden"
    assert TOKEN not in ran.out + ran.err
    assert not any(TOKEN.encode() in data for data in desk.files().values())


def test_ignore_name(desk: Desk) -> None:
    files = {**CHAT, "config.json": {"_name_or_path": "Qwen/Qwen3-8B"}}
    desk.hub.repos["Qwen/Qwen3-8B"] = Repo(files, info={"tags": ["base_model:Qwen/Qwen3-8B-Base"]})
    named = desk("Qwen/Qwen3-8B", "--dry-run", "--json").line["decisions"]
    hidden = desk("Qwen/Qwen3-8B", "--dry-run", "--json", "--ignore-name").line["decisions"]
    assert (named["tool_parser"]["value"], named["tool_parser"]["status"]) == ("hermes", "table")
    assert hidden["tool_parser"]["value"] is None
    assert "qwen" not in json.dumps(hidden).lower()


def test_explain_tells_every_piece_of_evidence(desk: Desk) -> None:
    err = desk("acme/base", "--dry-run", "--explain").err
    for said in receipt_evidence(desk):
        assert said["rule"] in err
    assert "max_position_embeddings" in err


def receipt_evidence(desk: Desk) -> Any:
    desk("acme/base")
    return receipt(desk)["evidence"]


def test_words_of_a_repository_do_not_steer_a_terminal(desk: Desk) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    files = {"config.json": {"model_type": evil, "architectures": [f"Llama{evil}ForCausalLM"]}}
    desk.hub.repos["acme/odd"] = Repo({**files, "chat_template.jinja": f"{evil}{{{{ messages }}}}"})
    for words in (["--explain"], ["--json"], ["--yes"]):
        ran = desk("acme/odd", *words)
        assert ran.code == 0, ran.err
        assert not [c for c in ran.out + ran.err if not (c.isprintable() or c == "\n")]
    assert not [c for c in desk("show", "odd").out if not (c.isprintable() or c == "\n")]


def test_no_validate_says_nothing_of_it(desk: Desk) -> None:
    assert "alidated" not in desk("acme/base", "--no-validate").err
    assert "engine install" in desk("acme/base").err


def heavy(size: int) -> Repo:
    return Repo({**BASE, "model.safetensors": b"\0" * size, "tokenizer.json": {}})


def test_what_validate_would_fetch_is_told(desk: Desk) -> None:
    desk.hub.repos["acme/heavy"] = heavy(20_000_000)
    desk.engine()
    ran = desk("acme/heavy", "--backend", "mlx")
    assert "--validate would fetch weights of 0.02 GB" in ran.err
    assert not any("safetensors" in path for path in desk.hub.paths())


def test_an_engine_that_is_missing_is_told_before_anything_is_fetched(desk: Desk) -> None:
    desk.hub.repos["acme/heavy"] = heavy(1000)
    ran = desk("acme/heavy", "--backend", "mlx", "--validate", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (6, "engine-missing")
    assert not any("safetensors" in path for path in desk.hub.paths())
    assert document(desk, "heavy")


def test_an_engine_that_nobody_knows_is_told_before_anything_is_written(desk: Desk) -> None:
    assert desk("acme/base", "--validate=llama").code == 6
    assert desk.files() == {}


def test_a_bare_validate_does_not_swallow_the_reference(desk: Desk) -> None:
    assert desk("--validate", "acme/base", "--json").line["reference"] == "acme/base"


def test_kinds_that_are_not_served(desk: Desk) -> None:
    desk.hub.repos["acme/ears"] = Repo(
        {"config.json": {"architectures": ["WhisperForConditionalGeneration"]}}
    )
    ran = desk("acme/ears", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (4, "not-chat")
    assert desk("acme/ears", "--json", "--set", "kind=chat", "--dry-run").code == 0


# Review


def test_without_a_terminal_the_review_is_pending(desk: Desk) -> None:
    desk("acme/base")
    assert receipt(desk)["review"] == {"state": "pending", "by": None, "at": None, "digest": None}


def test_yes_and_approve(desk: Desk) -> None:
    desk("acme/base", "--yes")
    review = receipt(desk)["review"]
    assert (review["state"], review["digest"]) == ("approved", receipt(desk)["digest"])
    assert review["by"].endswith("(--yes)")
    desk("other/base")
    assert receipt(desk, "other--base")["review"]["state"] == "pending"
    assert desk("approve", "other--base").code == 0
    review = receipt(desk, "other--base")["review"]
    assert (review["state"], review["digest"]) == ("approved", receipt(desk, "other--base")["digest"])


def state(desk: Desk, name: str = "base") -> tuple[str, str]:
    rows = [json.loads(line) for line in desk("list", "--json").out.splitlines()]
    row = next(r for r in rows if r["name"] == name)
    return row["review"], row["validation"]


def edit(desk: Desk, old: str, new: str) -> bytes:
    path = desk.folder / "models" / "base.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return path.read_bytes()


def validated(desk: Desk) -> None:
    """A receipt as it is after a run: this test is about what becomes of it."""
    path = desk.folder / "models" / "base.receipt.json"
    data = load(path)
    data["validation"] = {
        "digest": data["digest"],
        "passed": True,
        "outcomes": [],
        "engine": {},
        "seconds": {},
    }
    path.write_text(json.dumps(data))


def test_the_same_commit_again_changes_nothing(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    desk("acme/base")
    before = desk.files()
    for words in ((), ("--yes",)):
        ran = desk("acme/base", *words)
        assert (ran.code, "models/base.yaml stays as it is; review: approved." in ran.err) == (0, True)
        assert desk.files() == before
    assert state(desk) == ("approved", "passed")


def test_comments_of_a_person_survive_an_import_that_changes_nothing(desk: Desk) -> None:
    desk("acme/base")
    edited = edit(desk, "backend:", "# ours\nbackend:")
    assert desk("acme/base").code == 0
    assert (desk.folder / "models" / "base.yaml").read_bytes() == edited


def test_an_edited_document_is_not_overwritten(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    edit(desk, "temperature: 0.6", "temperature: 0.5")
    assert state(desk) == ("stale", "stale")
    before = desk.files()
    ran = desk("acme/base", "--json")
    assert (ran.code, desk.files()) == (0, before)
    assert ran.line["document"] == document(desk)
    desk("approve", "base")
    assert state(desk) == ("approved", "stale")
    assert desk("acme/base", "--set", "temperature=0.5").code == 0  # says the same: nothing is lost
    assert state(desk) == ("approved", "stale")


def test_a_changed_upstream_renews_a_document_that_nobody_edited(desk: Desk) -> None:
    desk("acme/base", "--yes")
    validated(desk)
    sha = desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.7}})
    assert desk("acme/base").code == 0
    assert (document(desk)["importer"]["revision"], document(desk)["parameters"]["temperature"]) == (sha, 0.7)
    assert state(desk) == ("draft", "stale")


def test_a_lost_receipt_is_written_again(desk: Desk) -> None:
    desk("acme/base")
    before = desk.files()
    (desk.folder / "models" / "base.receipt.json").unlink()
    assert desk("acme/base").code == 0
    assert set(desk.files()) == set(before)


def test_two_repositories_of_one_name(desk: Desk) -> None:
    first, second = (desk(f"{owner}/base", "--json").line for owner in ("acme", "other"))
    assert (first["name"], second["name"]) == ("base", "other--base")
    again = desk("other/base", "--json").line
    assert again["name"] == "other--base"
    ran = desk("other/base", "--name", "base", "--json")
    assert (ran.code, ran.line["error"]["kind"]) == (5, "exists")
    assert document(desk)["importer"]["model_id"] == "acme/base"


def test_a_broken_file_of_that_name_is_left_alone(desk: Desk) -> None:
    path = desk.folder / "models" / "base.yaml"
    path.parent.mkdir()
    path.write_text("a: [")
    assert desk("acme/base", "--json").line["name"] == "acme--base"
    assert path.read_text() == "a: ["


# Small commands


def test_match(desk: Desk) -> None:
    ran = desk("match", "Qwen/Qwen3-8B", "acme/unheard-of", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [list(r) for r in rows] == [
        ["model_id", "family", "tool_parser", "reasoning_parser", "sampling"]
    ] * 2
    assert (rows[0]["model_id"], rows[0]["tool_parser"], rows[0]["reasoning_parser"]) == (
        "Qwen/Qwen3-8B", "hermes", "qwen3",
    )  # fmt: skip
    assert rows[0]["sampling"]["top_k"] == 20
    assert [*rows[1].values()] == ["acme/unheard-of", None, None, None, {}]
    plain = desk("match", "Qwen/Qwen3-8B", "a\x1b[31mb")
    assert "hermes" in plain.out
    assert "\x1b" not in plain.out
    assert desk.hub.asked == 0


def test_list_show_and_nothing(desk: Desk) -> None:
    assert (desk("list", "--json").out, desk("list").code) == ("", 0)
    desk("acme/base", "--yes")
    row = json.loads(desk("list", "--json").out)
    assert row == {
        "name": "base", "model": "acme/base", "revision": desk.hub.repos["acme/base"].sha, "backend": "vllm",
        "review": "approved", "validation": "never",
    }  # fmt: skip
    assert "approved" in desk("list").out
    shown = json.loads(desk("show", "base", "--json").out)
    assert (shown["document"], shown["receipt"]) == (document(desk), receipt(desk))
    text = desk("show", "base").out
    assert (desk.folder / "models" / "base.yaml").read_text().strip() in text
    assert "review: approved; validation: never" in text


@pytest.mark.parametrize("name", ["nobody", "../models/base", "/etc/passwd", "x" * 5000, "..", "."])
def test_only_what_is_in_the_folder_is_shown_or_approved(desk: Desk, name: str) -> None:
    desk("acme/base")
    before = desk.files()
    for command in ("show", "review", "approve"):
        ran = desk(command, name)
        assert (ran.code, desk.files()) == (5, before)
        assert "There is no document" in ran.err


def test_one_broken_document_does_not_hide_the_others(desk: Desk) -> None:
    desk("acme/base")
    (desk.folder / "models" / "a.yaml").write_text("a: 2024-01-01")
    (desk.folder / "models" / "z.yaml").write_text("parameters: 5\nimporter: 5")
    ran = desk("list", "--json")
    rows = {r["name"]: r["review"] for r in map(json.loads, ran.out.splitlines())}
    assert (ran.code, rows) == (0, {"a": "invalid", "base": "draft", "z": "no receipt"})


def test_documents_that_cannot_be_read(desk: Desk) -> None:
    (desk.folder / "models" / "folder.yaml").mkdir(parents=True)
    (desk.folder / "models" / "bytes.yaml").write_bytes(b"\xff")
    for name, says in (("folder", "Is a directory"), ("bytes", "not UTF-8 text")):
        for words in (("show", name), ("validate", name), ("validate", f"models/{name}.yaml")):
            ran = desk(*words)
            assert (ran.code, says in ran.err) == (5, True)
    for missing in ("none.yaml", "models/none", "x" * 5000):
        assert desk("validate", missing).code == 5
    (desk.folder / "file").write_text("")
    for option in ("--json", "--output=file"):
        ran = desk("list", option, "--output", "file")
        assert (ran.code, "is a file where a folder belongs" in ran.err) == (5, True)


@pytest.mark.parametrize("port", ["0", "-1", "65536", "9" * 5000, "x", "٣"])
def test_ports_that_are_none(desk: Desk, port: str) -> None:
    ran = desk("validate", "base", f"--port={port}")
    assert (ran.code, "from 1 to 65535" in ran.err) == (2, True)


def test_an_invalid_document_is_not_approved(desk: Desk) -> None:
    desk("acme/base")
    edit(desk, "temperature: 0.6", "temperature: hot")
    ran = desk("approve", "base")
    assert ran.code == 5
    assert "temperature" in ran.err
    assert receipt(desk)["review"]["state"] == "pending"


def test_engines_that_are_not_there(desk: Desk) -> None:
    rows = [json.loads(line) for line in desk("engine", "list", "--json").out.splitlines()]
    assert {"mlx", "vllm-cpu"} <= {r["engine"] for r in rows}
    assert all(r["version"] is r["python"] is None for r in rows)
    assert "was not installed" in desk("engine", "remove", "mlx").err
    assert desk("engine").code == 2


def test_doctor(desk: Desk) -> None:
    ran = desk("doctor", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    keys = ["check", "subject", "verdict", "says", "remedy", "stops", "part"]
    assert all(list(r) == keys for r in rows)
    by_name = {(r["subject"], r["check"]): r for r in rows}
    assert by_name["machine", "hub"]["verdict"] == "fine"
    assert "engine install mlx" in by_name["mlx", "engine"]["remedy"]
    plain = desk("doctor")
    assert "engine install mlx" in plain.out
    assert (ran.code, plain.code) == (0, 0)  # what is not installed stops nobody


def test_the_doctor_on_a_document(desk: Desk) -> None:
    desk.directory("toy", BASE)
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    ran = desk("doctor", "toy", "--json")
    rows = {r["check"]: r for r in map(json.loads, ran.out.splitlines())}
    assert (ran.code, rows["engine"]["stops"], rows["engine"]["subject"]) == (1, True, "mlx")
    checks = len(ran.out.splitlines())
    assert ran.err.strip().endswith(f"of {checks} checks found what stops a run: mlx: engine.")
    assert desk("doctor", "models/toy.yaml", "--engine", "vllm", "--json").code == 1
    assert desk("doctor", "nobody").code == 5
    assert desk("doctor", "--engine", "mlx").code == 2


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(desk: Desk, command: str) -> None:
    ran = desk(*command.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("usage: importer")
    if not command:
        assert "examples:\n  importer Qwen/Qwen3-8B" in ran.out
        assert all(f"importer {c}" in ran.out for c in COMMANDS)


def test_every_option_is_explained(desk: Desk) -> None:
    text = desk("--help").out
    assert not re.search(r"\n  (--\S+)(?: [A-Z]+)?\n  -", text)


def test_version(desk: Desk) -> None:
    assert desk("--version").out == f"importer {__version__}\n"


def test_help_and_match_import_nothing_heavy() -> None:
    code = (
        "import sys; from importer.cli.main import run; run(sys.argv[1:]); "
        f"print(sorted(set(sys.modules) & {HEAVY}), file=sys.stderr)"
    )
    for words in (["--help"], ["match", "a/b", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=REPO, capture_output=True, text=True, check=True
        )
        assert done.stderr == "[]\n"
