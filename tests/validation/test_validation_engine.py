"""All probes on a real mlx-lm: the demo model passes every one, and each harmed twin of it is found out."""

from __future__ import annotations

import pytest

from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import serve
from importer.validation.expectations import promise_of
from importer.validation.outcome import Report
from importer.validation.probes import PROBES
from importer.validation.run import validate
from tests.judging import words
from tests.validation.test_validation_client import by_name
from tests.validation.test_validation_raw_engine import compare, document, running

pytestmark = pytest.mark.engine

DOCUMENT = document("mlx", "tool_parser:json_tools", "reasoning_parser:think")
# The model chats, and mlx-lm's server has none of the others; nobody renders here, or has the tokenizer.
APART = (
    "files-as-imported", "task-output", "prompt-rendered", "template-coverage", "tokenizer-whole",
    "request-options", "structured-output", "tool-choice", "other-paths",
)  # fmt: skip


def run(engine: Installed, document: dict[str, object] = DOCUMENT) -> Report:
    with serve(get("mlx"), engine.python, document, MODEL) as served:
        return validate(document, served, offers=get("mlx").offers)


def why(report: Report) -> str:
    return "\n".join(f"{r.probe}: {r.outcome.outcome}, {words(r.outcome)}" for r in report.rows)


def test_the_demo_model_passes_every_probe(mlx_engine: Installed) -> None:
    """Before, what it writes behind an answer is compared with the answer: a start costs more than that."""
    with running("mlx", mlx_engine, DOCUMENT, MODEL) as (served, ctx):
        compare(ctx)
        report = validate(DOCUMENT, served, offers=get("mlx").offers)
    names = [*(probe.name for probe in PROBES if probe.name not in APART), "stops-cleanly"]
    by_probe = by_name(report)
    assert [by_probe.pop(name) for name in APART] == [("not-applicable", None)] * len(APART)
    assert by_probe == dict.fromkeys(names, ("pass", None)), why(report)
    assert report.passed
    evidence = {row.probe: row.outcome.evidence for row in report.rows}
    assert all(evidence[name] for name in names if name != "stops-cleanly")
    assert {bool(e["request"].get("stream")) for e in evidence["no-special-tokens"]} == {False, True}


@pytest.mark.nightly
def test_a_base_model_is_asked_to_go_on_and_nothing_else(mlx_engine: Installed) -> None:
    report = run(mlx_engine, DOCUMENT | {"options": [], "importer": {"kind": "base"}})
    passed = [row.probe for row in report.rows if row.outcome.outcome == "pass"]
    assert passed == ["health", "model-listed", "task-output", "stops-cleanly"], why(report)
    assert report.passed


@pytest.mark.nightly
def test_what_the_document_does_not_promise_is_not_asked_for(mlx_engine: Installed) -> None:
    report = run(mlx_engine, DOCUMENT | {"options": []})
    by_probe = by_name(report)
    promise = promise_of(DOCUMENT | {"options": []}, get("mlx").offers)
    unasked = {probe.name for probe in PROBES if probe.needs(promise)}
    assert {"tool-call", "task-output"} < unasked
    not_applicable = {probe for probe, (outcome, _) in by_probe.items() if outcome == "not-applicable"}
    assert not_applicable == unasked | {
        "reasoning-apart", "settings-read-back", "files-as-imported", "prompt-rendered", "template-coverage",
        "tokenizer-whole", "request-options",
    }  # fmt: skip
    assert report.passed, why(report)
