"""The examples of CONTRIBUTING.md, taken from the page: each is put into a copy and does what it says."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gen_defaults import checks, job, regenerate, sampling
from gen_defaults.__main__ import main as command
from gen_defaults.checks import CheckSubject
from gen_defaults.place import Place
from gen_defaults.place import load as load_file
from gen_defaults.sources import SOURCES
from importer.decisions.decide import decide
from importer.decisions.decision import Preferences, Target
from importer.engines.registries import load, versions
from importer.hub.snapshot import Snapshot
from importer.sentences import render, short
from importer.signals import name as pattern
from importer.signals.family import match
from importer.signals.tables import parse_parsers, raw
from tests.package_index import wheel

pytestmark = pytest.mark.slow  # each test makes a copy
PAGE = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES: dict[str, str] = dict(re.findall(r"^```\w+ (\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))


def row(name: str) -> dict[str, Any]:
    found = json.loads(f"{{{EXAMPLES[name]}}}")
    assert isinstance(found, dict)
    return found


def module(name: str) -> dict[str, Any]:
    """What an example's module has."""
    names: dict[str, Any] = {}
    exec(compile(EXAMPLES[name], f"CONTRIBUTING.md: {name}", "exec"), names)
    return names


def with_family() -> dict[str, Any]:
    """The parser table with the example's row, where its length puts it."""
    data = copy.deepcopy(dict(raw("parser_defaults")))
    data["families"] |= row("row")
    data["patterns"] = sorted([*data["patterns"], *row("row")], key=lambda p: -pattern.length(p))
    return data


def subject(parsers: dict[str, Any]) -> CheckSubject:
    registries = tuple(load("vllm", version) for version in versions("vllm"))
    return CheckSubject(parsers, raw("inference_defaults"), registries)


def test_a_family() -> None:
    data = with_family()
    assert not [f for f in checks.run(subject(data)) if f.fails]
    found = match(parse_parsers(data), "acme/Acme-Anvil-7B-Instruct")
    assert found is not None
    assert found.parsers == {"tool_parser": "hermes", "reasoning_parser": None}
    base = match(parse_parsers(data), "acme/Acme-Anvil-7B")
    assert base is not None
    assert base.kind == "base"


def test_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECKS", (*checks.CHECKS, module("check")["check"]))
    data = with_family()
    assert not [f for f in checks.run(subject(data)) if f.row == "acme-anvil"]
    data["families"]["acme-anvil"]["source"] = "web"
    told = [f.message for f in checks.run(subject(data)) if f.row == "acme-anvil"]
    assert told == ["its source says nothing"]


# What asks the sources: on a copy of the files, with a folder in place of the index


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A copy of everything that is read or written."""
    here, there = Place(), Place(tmp_path / "copy")
    for path in (here.parsers, here.sampling, here.rows, here.proposal):
        target = there.root / path.relative_to(here.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copytree(here.registries, there.registries)
    shutil.copytree(here.upstream("unsloth").parent, there.upstream("unsloth").parent)
    return there


def index(folder: Path, package: str, version: str, texts: dict[str, str]) -> Path:
    """A folder with one wheel, in place of the package index."""
    folder.mkdir()
    (folder / f"{package}-{version}-py3-none-any.whl").write_bytes(wheel(texts))
    return folder


@pytest.mark.parametrize("name", ["sampling", "note"])
def test_sampling_values(place: Place, name: str) -> None:
    data = load_file(place.rows)
    data["families"] |= row(name)
    made = sampling.table(data, load_file(place.upstream("unsloth")), load_file(place.upstream("vendors")))
    ((family, given),) = row(name).items()
    assert made["families"][family] == given["values"]
    assert made["sources"][family] == "vendor's card"
    vendors = {"acme/Acme-Anvil-7B-Instruct": {"temperature": 1.0}}
    told = checks.run(CheckSubject(raw("parser_defaults"), made, vendors=vendors))
    assert [f.severity for f in told if f.row == family] == ["note" if "notes" in given else "error"]


def test_an_engines_version(place: Place, tmp_path: Path) -> None:
    (_, _, _, *words) = EXAMPLES["version"].split()
    registered = {
        "vllm/tool_parsers/__init__.py": '_TOOL_PARSERS_TO_REGISTER = {"anvil": ("anvil", "AnvilParser")}\n',
        "vllm/reasoning/__init__.py": '_REASONING_PARSERS_TO_REGISTER = {"anvil": ("anvil", "Thinks")}\n',
    }
    folder = index(tmp_path / "index", "vllm", "0.99.0", registered)
    assert command([*words, "--offline", str(folder)], place) == 0
    registry = load_file(place.registries / "vllm-0.99.0.json")
    assert [entry["class"] for entry in registry["tool"]] == ["AnvilParser"]
    assert registry["source"]["file"] == "vllm-0.99.0-py3-none-any.whl"


def test_a_source(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = eval(f"{{{EXAMPLES['line']}}}", {"acme": SimpleNamespace(**module("source"))})
    monkeypatch.setattr(regenerate, "SOURCES", {**SOURCES, **line})
    monkeypatch.setattr(job, "SOURCES", {**SOURCES, **line})
    values = {"anvil": {"temperature": 0.6, "nucleus": 0.9}}
    folder = index(
        tmp_path / "index", "acme_recipes", "1.0", {"acme_recipes/values.json": json.dumps(values)}
    )
    assert command(["--only", "acme", "--offline", str(folder)], place) == 0
    said = load_file(place.upstream("acme"))
    assert said["families"] == {"anvil": {"temperature": 0.6, "top_p": 0.9}}
    assert said["source"]["version"] == "1.0"
    assert len(said["source"]["sha256"]) == 64


def test_a_reader_of_evidence() -> None:
    """Its fact is decided by the rule's place in the order, and its sentence is that of the kind."""
    found = module("reader")
    [fact] = found["evidence"](Snapshot("r", "a/b", None, (), {}, {"card": {"datasets": ["c4", "dolma"]}}))
    assert found["evidence"](Snapshot("r", "a/b", None, (), {})) == []
    decided = decide([fact], Preferences(), Target("vllm"))["datasets"]
    assert (decided.value, decided.status) == (["c4", "dolma"], fact.rule.status)
    assert render(fact.reason) == "the card names c4 and dolma"
    assert short(fact.reason) == "model card"
