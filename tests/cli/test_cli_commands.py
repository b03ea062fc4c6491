"""The small commands: list, show, why, engine, doctor, info; help, version and mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from importer.app.preferences import parse
from importer.cli.commands import COMMANDS
from importer.engines.registries import load
from importer.memory.devices import named
from tests.commandline import BASE, REPO, Desk, document, receipt
from tests.failing import WEIGHTS

HEAVY = {
    "huggingface_hub", "jinja2", "rich", "jsonschema", "yaml", "httpx", "httpx2", "fastapi", "sqlalchemy",
    "pydantic",
}  # fmt: skip
LONG = "a" * 300


def test_match(desk: Desk) -> None:
    ran = desk("info", "match", "Qwen/Qwen3-8B", "acme/unheard-of", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [list(r) for r in rows] == [
        ["model_id", "family", "tool_parser", "reasoning_parser", "sampling"]
    ] * 2
    assert (rows[0]["model_id"], rows[0]["tool_parser"], rows[0]["reasoning_parser"]) == (
        "Qwen/Qwen3-8B", "hermes", "qwen3",
    )  # fmt: skip
    assert rows[0]["sampling"]["top_k"] == 20
    assert [*rows[1].values()] == ["acme/unheard-of", None, None, None, {}]
    plain = desk("info", "match", "Qwen/Qwen3-8B", "a\x1b[31mb")
    assert "hermes" in plain.out
    assert "\x1b" not in plain.out
    assert desk.hub.asked == 0


def test_list_show_and_nothing(desk: Desk) -> None:
    assert (desk("list", "--json").out, desk("list").code) == ("", 0)
    desk("acme/base", "--yes")
    row = json.loads(desk("list", "--json").out)
    facts = row.pop("facts")
    assert row == {
        "name": "base", "model": "acme/base", "revision": desk.hub.repos["acme/base"].sha, "backend": "vllm",
        "review": "approved", "validation": "never", "state": "approved", "reason": "it was never validated",
        "needs_attention": [], "variants": [],
    }  # fmt: skip
    assert (facts["context"], facts["described_by"], facts["validated"]) == (512, "facts", None)
    assert "approved" in desk("list").out
    shown = json.loads(desk("show", "base", "--json").out)
    assert (shown["document"], shown["receipt"]) == (document(desk), receipt(desk))
    text = desk("show", "base").out
    assert (desk.folder / "models" / "base.yaml").read_text().strip() in text
    assert "review: approved; validation: never" in text


def test_show_has_the_value_that_is_there_and_every_offer(desk: Desk) -> None:
    desk("acme/base")
    file = desk.folder / "models" / "base.yaml"
    file.write_text(file.read_text().replace("temperature: 0.6", "temperature: 0.9"))
    values = {one["key"]: one for one in json.loads(desk("show", "base", "--json").out)["values"]}
    found = values["parameters.temperature"]
    assert (found["value"], found["imported"], found["status"]) == (0.9, 0.6, "edited")
    assert found["vendor"] == {"value": 0.6, "source": "generation_config.json"}
    plain = desk("why", "base", "temperature").out
    assert plain.startswith("parameters.temperature: 0.9, edited\n")
    assert "not 0.6  the vendor's generation_config.json says temperature: 0.6" in plain
    shown = json.loads(desk("review", "base", "--json").out)
    assert [one for one in shown["values"] if one["status"] == "edited"] == [found]
    assert {one["effect"] for one in shown["losses"]} >= {"added"}
    assert "LocalAI, added: " in desk("review", "base").out


def test_why_names_the_facts_and_what_lost(desk: Desk) -> None:
    desk("acme/base", "--yes")
    told = {one["key"]: one for one in map(json.loads, desk("why", "base", "--json").out.splitlines())}
    decided = receipt(desk)["decisions"]
    assert told.keys() <= decided.keys()
    assert all(one["facts"] == decided[key]["why"] for key, one in told.items())
    lost = decided["backend"]["overruled"]
    assert told["backend"]["candidates"][: len(lost)] == lost
    assert len(desk("why", "base").out.splitlines()) <= 60
    ran = desk("why", "base", "temprature")
    assert (ran.code, "Did you mean parameters.temperature" in ran.err) == (5, True)


@pytest.mark.parametrize("name", ["nobody", "../models/base", "x" * 5000, ".."])
def test_only_what_is_in_the_folder_is_shown_or_approved(desk: Desk, name: str) -> None:
    desk("acme/base")
    before = desk.files()
    for command in ("show", "why", "review"):
        ran = desk(command, name)
        assert (ran.code, desk.files()) == (5, before)
        assert "There is no document" in ran.err


def test_one_broken_document_does_not_hide_the_others(desk: Desk) -> None:
    desk("acme/base")
    (desk.folder / "models" / "a.yaml").write_text("a: 2024-01-01")
    (desk.folder / "models" / "z.yaml").write_text("parameters: 5\nimporter: 5")
    ran = desk("list", "--json")
    rows = {r["name"]: r["review"] for r in map(json.loads, ran.out.splitlines())}
    assert (ran.code, rows) == (0, {"a": "invalid", "base": "draft", "z": "invalid"})


def test_documents_that_cannot_be_read(desk: Desk) -> None:
    (desk.folder / "models" / "folder.yaml").mkdir(parents=True)
    (desk.folder / "models" / "bytes.yaml").write_bytes(b"\xff")
    for name, says in (("folder", "not a plain file"), ("bytes", "not UTF-8 text")):
        for words in (("show", name), ("validate", name), ("validate", f"models/{name}.yaml")):
            ran = desk(*words)
            assert (ran.code, says in ran.err) == (5, True)
    for missing in ("none.yaml", "models/none", "x" * 5000):
        assert desk("validate", missing).code == 5
    (desk.folder / "file").write_text("")
    for option in ("--json", "--dir=file"):
        ran = desk("list", option, "--dir", "file")
        assert (ran.code, "is a file where a folder belongs" in ran.err) == (5, True)


@pytest.mark.parametrize("port", ["0", "65536", "x", "٣"])
def test_ports_that_are_none(desk: Desk, port: str) -> None:
    ran = desk("validate", "base", f"--port={port}")
    assert (ran.code, "from 1 to 65535" in ran.err) == (2, True)


def test_engines_that_are_not_there(desk: Desk) -> None:
    rows = [json.loads(line) for line in desk("engine", "list", "--json").out.splitlines()]
    assert {"mlx", "vllm-cpu"} <= {r["engine"] for r in rows}
    assert all(r["version"] is r["python"] is None for r in rows)
    assert "was not installed" in desk("engine", "remove", "mlx").err
    assert desk("engine").code == 2


def test_doctor(desk: Desk) -> None:
    ran = desk("doctor", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    keys = ["check", "subject", "verdict", "message", "remedy", "part"]
    assert all(list(r) == keys for r in rows)
    by_name = {(r["subject"], r["check"]): r for r in rows}
    assert by_name["machine", "disk"]["verdict"] == "fine"
    assert "engine install mlx" in by_name["mlx", "engine"]["remedy"]
    plain = desk("doctor")
    assert "engine install mlx" in plain.out
    assert (ran.code, plain.code) == (0, 0)  # what is not installed stops nobody


def test_the_doctor_on_a_document(desk: Desk) -> None:
    desk.directory("toy", BASE)
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    ran = desk("doctor", "toy", "--json")
    rows = {r["check"]: r for r in map(json.loads, ran.out.splitlines())}
    assert (ran.code, rows["engine"]["verdict"], rows["engine"]["subject"]) == (1, "stops", "mlx")
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
        assert len(ran.out.splitlines()) <= 40
        assert all(re.search(rf"\b{c}\b", ran.out) for c in COMMANDS)
        whole = desk("--help-all")
        assert (whole.code, all(f"importer {c}" in whole.out for c in COMMANDS)) == (0, True)


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (("reveiw", "x"), "Did you mean 'importer review'? See 'importer --help'."),
        (("validate", "x", "--fetc"), "Did you mean --fetch? See 'importer validate --help'."),
        (("validate", "x", "--validate"), "See 'importer validate --help'."),
        (("engine", "install"), "See 'importer engine install --help'."),
        (("engine", "list", "--jsn"), "Did you mean --json? See 'importer engine list --help'."),
        (("info", "kyes"), "Did you mean keys? See 'importer info --help'."),
        (("admin", "api-keys", "revok"), "Did you mean revoke? See 'importer admin api-keys --help'."),
        (("acme/m", "--goal", "speed"), "See 'importer import --help'."),
        (("acme/m", "--memory", "lots"), "See 'importer import --help' for the values of --memory."),
        (
            ("acme/m", "--device", "h100x"),
            "'importer info devices' lists all. Eight of a device are 8xNAME. Or give --memory.",
        ),
    ],
)  # fmt: skip
def test_a_mistake_leads_to_what_its_own_command_takes(desk: Desk, words: Sequence[str], step: str) -> None:
    desk.directory("acme", BASE)
    ran = desk(*words)
    assert (ran.code, ran.err.splitlines()[1:]) == (2, [step])


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (("keys",), "Did you mean 'importer info keys'? See 'importer --help'."),
        (("parsers", "--backend", "vllm"), "Did you mean 'importer info parsers'? See 'importer --help'."),
        (("api-keys", "list"), "Did you mean 'importer admin api-keys'? See 'importer --help'."),
        (("aprove", "base"), "Did you mean 'importer review NAME --approve'? See 'importer --help'."),
        (("help",), "Did you mean 'importer --help'? See 'importer --help'."),
        (("lst",), "Did you mean 'importer list'? See 'importer --help'."),
        (("frobnicate", "base"), "See 'importer --help'."),
    ],
)
def test_a_word_that_is_no_command_leads_to_one(desk: Desk, words: Sequence[str], step: str) -> None:
    ran = desk(*words)
    assert (ran.code, ran.err.splitlines()) == (2, [f"importer: {words[0]}: is no command.", step])


def test_a_folder_with_a_name_like_a_command_is_meant_as_a_folder(desk: Desk) -> None:
    (desk.folder / "keys").mkdir()
    assert "write ./keys to import it" in desk("keys").err


def test_a_worker_has_no_option_of_a_server(desk: Desk) -> None:
    served, worked = (desk(*command, "--help").out for command in (("serve",), ("admin", "worker")))
    assert all(option in served for option in ("--port", "--rate", "--trusted-proxy", "--database"))
    assert not [o for o in ("--port", "--host", "--rate", "--trusted-proxy", "--public-url") if o in worked]
    assert "--database" in worked
    assert not re.search(r"--keep-", served + worked)  # of the file and the environment


def test_every_option_is_explained(desk: Desk) -> None:
    text = desk("--help-all").out
    assert not re.search(r"\n  (--\S+)(?: [A-Z]+)?\n  -", text)


@pytest.mark.slow
def test_keys_are_what_set_accepts(desk: Desk) -> None:
    rows = [json.loads(line) for line in desk("info", "keys", "--json").out.splitlines()]
    assert len(rows) > 40
    of_engines = {r["key"] for r in rows if r["key"].startswith("engine_args.")}
    assert {"engine_args.max_num_seqs", "engine_args.kv_bits"} <= of_engines
    assert not {"engine_args.host", "engine_args.api_key"} & of_engines
    rows = [r for r in rows if r["key"] not in of_engines]
    samples = {
        "number": "0.5", "integer": "1", "integer or string": "1", "boolean": "true", "string": "x",
        "array": "[]", "object": "{}",
    }  # fmt: skip
    told = parse([f"{r['key']}={samples.get(r['type'], 'chat')}" for r in rows if r["key"] != "backend"])
    assert set(told.values) == {r["key"] for r in rows} - {"backend"}
    assert "top_k" in desk("info", "keys").out


def test_devices_and_parsers_are_those_that_can_be_named(desk: Desk) -> None:
    rows = [json.loads(line) for line in desk("info", "devices", "--json").out.splitlines()]
    assert [named(r["name"]).to_json() for r in rows] == rows
    parsers = [
        json.loads(line) for line in desk("info", "parsers", "--backend", "vllm", "--json").out.splitlines()
    ]
    assert {"hermes", "qwen3"} <= {r["parser"] for r in parsers}
    assert all(load("vllm", r["version"]).has(r["kind"], r["parser"]) for r in parsers)
    assert desk("info", "parsers", "--engine-version", "0.32.0").code == 2
    assert desk("info", "parsers", "--backend", "vllm", "--engine-version", "0.0.1").code == 2


def test_a_document_is_not_run_on_an_engine_without_its_parsers(desk: Desk) -> None:
    desk.directory("toy", WEIGHTS)
    assert (
        desk("./toy", "--backend", "vllm", "--set", "tool_parser=hermes", "--yes", "--no-validate").code == 0
    )
    desk.engine()
    ran = desk("validate", "toy", "--engine", "mlx")
    assert (ran.code, "toy is the document for vllm, not for mlx" in ran.err) == (5, True)


def test_a_folder_that_is_not_there_has_no_list(desk: Desk) -> None:
    assert desk("list").code == 0
    ran = desk("list", "-d", "typo")
    assert (ran.code, "no directory typo" in ran.err) == (2, True)


def completed(line: str, folder: Path) -> set[str]:
    """Return what a shell is offered behind a line."""
    asked = {**os.environ, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SHELL": "fish"}
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": "offered"}
    words = [sys.executable, "-m", "importer"]
    subprocess.run(words, env=asked, check=True, cwd=folder)
    return {word.split("\t")[0].strip() for word in (folder / "offered").read_text().splitlines()}


def test_a_shell_is_offered_commands_options_and_their_values(desk: Desk) -> None:
    (desk.folder / "models").mkdir()
    (desk.folder / "models" / "qwen3-8b.yaml").touch()
    for line, offered in {
        "importer rep": {"report"},
        "importer import --on-c": {"--on-conflict"},
        "importer acme/chat --backend mlx-": {"mlx-vlm"},
        "importer acme/chat --device rtx40": {"rtx4090"},
        "importer show qw": {"qwen3-8b"},
        "importer export qwen3-8b comp": {"compose"},
        "importer acme/chat --set top_": {"top_p=", "top_k="},
        "importer recheck qw": {"qwen3-8b"},
        "importer why qwen3-8b tool": {"tool_parser"},
        "importer engine install ml": {"mlx", "mlx-vlm"},
        "importer validate qwen3-8b --probe hea": {"health"},
    }.items():
        assert offered <= completed(line, desk.folder), line
    (desk.folder / "models").rename(desk.folder / "gallery")
    (desk.folder / "importer.toml").write_text("dir = 'gallery'")
    assert {"qwen3-8b"} <= completed("importer show qw", desk.folder)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_asks_importer_under_both_of_its_names(desk: Desk, shell: str) -> None:
    text = desk("completion", shell).out
    assert all(name in text for name in ("model-importer", "_ARGCOMPLETE"))


def test_bash_completes(desk: Desk) -> None:
    program = desk.folder / "importer"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m importer "$@"\n')
    program.chmod(0o755)
    (desk.folder / "script").write_text(desk("completion", "bash").out)
    typed = (
        "PATH=$PWD:$PATH; source ./script; COMP_LINE='importer rep'; COMP_POINT=12; COMP_TYPE=9; "
        "_python_argcomplete importer; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=False, cwd=desk.folder)
    assert done.stdout.split() == ["report"], done.stderr


ROOMS = {"app", "backends", "cli", "config", "errors", "reasons", "sentences", "version"}


@pytest.mark.parametrize(
    ("words", "rooms"), [("--help", ROOMS), ("import --help", None), ("info match a/b --json", None)]
)
def test_help_and_match_import_nothing_heavy(words: str, rooms: set[str] | None) -> None:
    """The help of all commands imports no room below the command line."""
    code = "import sys; from importer.cli.main import run; run(sys.argv[1:]); print(*sys.modules)"
    argv = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert not HEAVY & {*loaded}
    assert rooms in (None, {name.split(".")[1] for name in loaded if name.startswith("importer.")})


@pytest.mark.parametrize(
    "words",
    [
        ("export", "a", "compose", "--output", ""), ("list", "--dir", ""), ("fit", "a", "--devices", ""),
        ("acme/base", "--engine-version", ""), ("info", "match", ""), ("gallery", "check", ""),
        ("gallery", "diff", "", ""),
    ],
)  # fmt: skip
def test_an_empty_text_names_nothing(desk: Desk, words: tuple[str, ...]) -> None:
    """As of a variable that is not set."""
    ran = desk(*words)
    assert (ran.code, ": must not be empty" in ran.err) == (2, True)


@pytest.mark.parametrize("words", [("report", "/"), ("fit", "/"), ("doctor", "/")])
def test_a_path_without_a_name_is_no_document(desk: Desk, words: tuple[str, ...]) -> None:
    ran = desk(*words)
    assert (ran.code, "must name a document" in ran.err) == (2, True)


@pytest.mark.parametrize(
    "words", [(LONG,), ("list", "--dir", LONG), ("gallery", "check", LONG), ("gallery", "diff", LONG, LONG)]
)
def test_a_path_that_the_system_refuses_is_told(desk: Desk, words: tuple[str, ...]) -> None:
    ran = desk(*words)
    assert (ran.code, "could not be opened: File name too long" in ran.err) == (5, True)
