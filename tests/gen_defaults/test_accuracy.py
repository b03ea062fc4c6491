"""Tables before and after, on a small folder of made-up models: what got worse is refused."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from gen_defaults.accuracy import AccuracyChange, ScoredTables, compare
from gen_defaults.checks import CheckSubject, contradictions
from importer.engines.install import Installed
from importer.signals import tables
from tests import template_texts as texts

pytestmark = pytest.mark.slow  # the makers of tables

TRUTH = Path(__file__).parents[1].joinpath("fixtures") / "truth"
PARSERS: dict[str, Any] = {
    "families": {
        "anvil*thinking": {"tool_parser": "hermes", "reasoning_parser": "qwen3", "source": "made up"},
        "anvil": {"tool_parser": "hermes", "reasoning_parser": None, "source": "made up"},
        "rocket": {"tool_parser": None, "source": "made up"},
    }
}
SAMPLING: dict[str, Any] = {
    "families": {"anvil": {"temperature": 0.7, "top_p": 0.9}},
    "sources": {"anvil": "made up"},
}


def after(place: str = "", key: str = "", value: object = None) -> ScoredTables:
    """The tables with one value of one family changed; of a family in both, the sampling table's."""
    parsers, sampling = copy.deepcopy(PARSERS), copy.deepcopy(SAMPLING)
    if place:
        table = parsers if key in tables.PARSERS else sampling
        table["families"][place][key] = value
    return ScoredTables.of(parsers, sampling)


def compared(changed: ScoredTables) -> AccuracyChange:
    return compare(TRUTH / "repos", after(), changed, truth=TRUTH / "truth.csv")


def test_the_same_tables_are_neither_better_nor_worse(importer_home: Path) -> None:
    found = compared(after())
    assert found.worse == []
    assert [*found.lines()] == [
        "parsers: 4/4 → 4/4 models right",
        "sampling: 1 right 1 different 1 missing → 1 right 1 different 1 missing of the vendors' values",
    ]


@pytest.mark.parametrize(
    ("place", "key", "value", "says"),
    [
        ("anvil", "tool_parser", "mistral", "parsers 2/2 became 1/2"),
        ("rocket", "tool_parser", "hermes", "parsers 2/2 became 0/2"),
        (
            "anvil", "temperature", 1.5,
            "sampling 1 right 1 different 1 missing became 0 right 2 different 1 missing",
        ),
        (
            "anvil", "top_k", 64,
            "sampling 1 right 1 different 1 missing became 1 right 2 different 0 missing",
        ),
    ],
)  # fmt: skip
def test_a_family_that_got_worse(importer_home: Path, place: str, key: str, value: object, says: str) -> None:
    (found,) = compared(after(place, key, value)).worse
    assert (found.row, found.message) == (place, f"it got worse: {says}")
    assert found.fails
    assert "--accept-worse" in found.step


def test_what_got_better_is_told_and_not_refused(importer_home: Path) -> None:
    found = compared(after("anvil", "top_p", 0.8))
    assert found.worse == []
    assert next(found.lines()) == (
        "anvil: sampling 1 right 1 different 1 missing → 2 right 0 different 1 missing"
    )
    before = after("anvil", "tool_parser", "mistral")
    back = compare(TRUTH / "repos", before, after(), truth=TRUTH / "truth.csv")
    assert (back.worse, next(back.lines())) == ([], "anvil: parsers 1/2 → 2/2")


@pytest.mark.engine
@pytest.mark.xdist_group("parsers")
def test_a_row_that_the_real_parsers_refute(
    tmp_path: Path, importer_home: Path, vllm_parsers: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_parsers.python))
    place = tmp_path / "acme__Anvil-7B-Instruct"
    shutil.copytree(TRUTH / "repos", tmp_path, dirs_exist_ok=True)
    (place / "chat_template.jinja").write_text(texts.XML_PARAMETERS)
    wrong = after("anvil", "tool_parser", "qwen3_coder")
    found = compare(tmp_path, after(), wrong, proves=True, truth=TRUTH / "truth.csv")
    assert [p.model_id for p in found.proved] == ["acme/Anvil-7B-Instruct"]
    told = [*contradictions.refuted(CheckSubject(PARSERS, SAMPLING, proofs=found.proved))]
    assert [(f.row, f.severity) for f in told] == [("anvil", "error")]
    assert (
        "refutes the tool parser hermes on the template of acme/Anvil-7B-Instruct (one-call"
        in told[0].message
    )
    right = {"families": {"anvil": {"tool_parser": "qwen3_coder", "source": "made up"}}}
    assert [*contradictions.refuted(CheckSubject(right, SAMPLING, proofs=found.proved))] == []
