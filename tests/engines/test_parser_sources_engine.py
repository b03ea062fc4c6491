"""The parsers alone answer as their engine does, over templates of every kind; a first import is proved."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gen_defaults.__main__ import main as gen_defaults
from importer.engines import parser_sources
from importer.engines.install import Installed, search_path, sources_of
from importer.engines.parsers import ParserWorker
from importer.sentences import render
from tests import template_texts as texts
from tests.proof.test_proof_engine import ask
from tests.tiers import one_of_each

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]
TEMPLATES = {
    name: getattr(texts, name)
    for name in (
        "CHATML_JSON", "XML_PARAMETERS", "PYTHONIC", "KIMI_IDS", "SWITCHED", "OPENED", "CHANNELS", "INST",
    )
}  # fmt: skip
WORDS = ("<|im_end|>", "<|im_start|>", "<think>", "</think>", "<tool_call>", "</tool_call>")


@pytest.mark.parametrize("name", one_of_each([*TEMPLATES]))
def test_the_parsers_alone_say_what_the_engine_says(
    vllm_engine: Installed, vllm_parsers: Installed, name: str
) -> None:
    assert vllm_engine.version == vllm_parsers.version
    assert sources_of(vllm_engine.python) is None
    with (
        ParserWorker("vllm", vllm_engine.python) as engine,
        ParserWorker("vllm", vllm_parsers.python) as alone,
    ):
        whole, parts = (ask(worker, TEMPLATES[name], WORDS) for worker in (engine, alone))
    assert (whole.alone, parts.alone, parts.accidents) == (False, True, 0)
    assert replace(parts, alone=False).to_json() == whole.to_json()


def test_sources_that_changed_are_not_asked(vllm_parsers: Installed) -> None:
    """A parser whose file is cut short would lose, and another be proved in its place."""
    found = sources_of(vllm_parsers.python)
    assert found is not None
    parser = found / "vllm" / "tool_parsers" / "hermes_tool_parser.py"
    whole = parser.read_bytes()
    try:
        parser.write_bytes(whole[: len(whole) // 2])
        assert parser_sources.find("vllm", vllm_parsers.version) is None
    finally:
        parser.write_bytes(whole)
    assert parser_sources.find("vllm", vllm_parsers.version) == vllm_parsers


def test_a_home_that_moved_still_has_its_parsers(
    vllm_parsers: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vllm_parsers.root is not None
    moved = tmp_path / "engines" / vllm_parsers.root.parent.name
    shutil.copytree(vllm_parsers.root.parent, moved, symlinks=True)
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path))
    found = parser_sources.find("vllm", vllm_parsers.version)
    assert found is not None
    assert all(place.is_relative_to(moved) for place in search_path(found.python)[-2:])


def test_a_proof_that_cannot_judge_every_parser_is_kept(sglang_engine: Installed) -> None:
    """deepseekv4 needs a package that is not among the light ones, and that is so at the next import, too."""
    with ParserWorker("sglang", sglang_engine.python) as worker:
        proof = ask(worker, TEMPLATES["CHATML_JSON"], WORDS)
    tool, _ = proof.evidence()
    assert "deepseek-recipe" in render(tool.value.unjudged["deepseekv4"])
    assert "qwen" in tool.value.complete, "its streams are read with orjson"
    assert proof.accidents == 0


@pytest.mark.nightly
def test_the_parsers_of_every_known_version_are_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert gen_defaults(["parsers"]) == 0
    assert "is not registered" not in (lines := capsys.readouterr().err)
    assert "reads no call" not in lines


def test_the_job_of_the_tables_names_what_parsers_lack(
    sglang_engine: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gen_defaults(["parsers", f"sglang=={sglang_engine.version}"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[2] for line in lines] == [" tool parser deepseekv4", " tool parser deepseekv41"]
    assert "deepseek-recipe" in lines[0]
    assert gen_defaults(["parsers", "vllm==0.14.1"]) == 1
    assert "only the sources of" in capsys.readouterr().err
