"""All probes on a real mlx-lm: the demo model passes every one, and each harmed twin of it is found out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import importer.demo
from importer.engines import get, install
from importer.engines.process import serve
from importer.validation.evidence_sources import Background
from importer.validation.expectations import promise_of
from importer.validation.outcome import Report
from importer.validation.probe import ProbeOptions
from importer.validation.probes import (
    PROBES,
    health,
    history,
    log_probabilities,
    sampling_arrives,
    stop_strings,
    system_role,
    token_limit,
)
from importer.validation.run import validate
from tests.judging import words

pytestmark = pytest.mark.engine

MODEL = Path(importer.demo.__file__).with_name("model")
DOCUMENT = {
    "name": "demo",
    "backend": "mlx",
    "parameters": {"model": "./model", "temperature": 0.0},
    "options": ["tool_parser:json_tools", "reasoning_parser:think"],
    "max_model_len": 600,
}
APART = (  # the model chats, and mlx-lm's server has none of the others
    "context-length",
    "memory-predicted",
    "files-as-imported",
    "embedding",
    "rerank",
    "classes",
    "transcription",
    "plain-completion",
    "prompt-rendered",  # nobody renders here, or has the tokenizer
    "turns-rendered",
    "tokenizer-whole",
    "token-numbers",
    "likelihood",
    "template-whole",
    "prompt-arrives",
    "request-options",
    "stop-strings",
    "stop-words",
    "log-probabilities",
    "structured-output",
    "guided-output",
    "tokenize-round-trip",
    "tool-choice",
    "images",
    "messages",
    "messages-tools",
    "count-tokens",
    "responses",
    "responses-reasoning",
    "responses-tools",
    "long-prompt",
)
Found = dict[str, tuple[str, str | None]]


@pytest.fixture(scope="module")
def python() -> Path:
    engine = get("mlx")
    return (install.find(engine) or install.install(engine)).python


def run(python: Path, directory: Path, document: dict[str, object] = DOCUMENT) -> Report:
    with serve(get("mlx"), python, document, directory) as served:
        known = Background(memory=lambda: served.memory)
        return validate(document, served, known, offers=get("mlx").offers)


def found(report: Report) -> Found:
    return {row.probe: (row.outcome.outcome, row.outcome.attribution) for row in report.rows}


def why(report: Report) -> str:
    return "\n".join(f"{r.probe}: {r.outcome.outcome}, {words(r.outcome)}" for r in report.rows)


def test_the_demo_model_passes_every_probe(python: Path) -> None:
    report = run(python, MODEL)
    names = [*(probe.NAME for probe in PROBES if probe.NAME not in APART), "stops-cleanly"]
    by_probe = found(report)
    assert [by_probe.pop(name) for name in APART] == [("not-applicable", None)] * len(APART)
    assert by_probe == dict.fromkeys(names, ("pass", None)), why(report)
    assert report.passed
    evidence = {row.probe: row.outcome.evidence for row in report.rows}
    assert all(evidence[name] for name in names if name != "stops-cleanly")
    assert {bool(e["request"].get("stream")) for e in evidence["no-special-tokens"]} == {False, True}


def test_a_base_model_is_asked_to_go_on_and_nothing_else(python: Path) -> None:
    report = run(python, MODEL, DOCUMENT | {"options": [], "importer": {"kind": "base"}})
    passed = [row.probe for row in report.rows if row.outcome.outcome == "pass"]
    assert passed == ["health", "model-listed", "plain-completion", "stops-cleanly"], why(report)
    assert report.passed


def test_what_the_document_does_not_promise_is_not_asked_for(python: Path) -> None:
    report = run(python, MODEL, DOCUMENT | {"options": []})
    by_probe = found(report)
    promise = promise_of(DOCUMENT | {"options": []}, get("mlx").offers)
    unasked = {probe.NAME for probe in PROBES if probe.needs(promise)}
    assert {"tool-call", "later-turns", "plain-completion"} < unasked
    not_applicable = {probe for probe, (outcome, _) in by_probe.items() if outcome == "not-applicable"}
    assert not_applicable == unasked | {
        "reasoning-apart", "context-length", "settings-read-back", "memory-predicted", "files-as-imported",
        "prompt-rendered", "turns-rendered", "tokenizer-whole", "token-numbers", "likelihood",
        "template-whole", "prompt-arrives", "request-options",
    }  # fmt: skip
    assert report.passed, why(report)


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"{path.name} does not hold {old!r}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def no_parser_inferred(model: Path) -> None:
    """mlx-lm infers its parser from the words ``tool_call.name`` in the template."""
    edit(model / "chat_template.jinja", ("set tool_call =", "set asked ="), ("tool_call.", "asked."))


def wrong_parser_claimed(model: Path) -> None:
    """A label in the repository wins over what the template shows."""
    settings = model / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"tool_parser_type": "qwen3_coder"}))


def thinking_markers_unknown(model: Path) -> None:
    """mlx-lm looks for markers that it knows in the vocabulary; without, it switches thinking off."""
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        edit(model / name, ("<think>", "<ponder>"), ("</think>", "</ponder>"))


def end_of_turn_unknown(model: Path) -> None:
    """Nothing says any more that ``<|im_end|>`` ends a turn."""
    for name in ("config.json", "generation_config.json"):
        data = json.loads((model / name).read_text())
        (model / name).write_text(json.dumps(data | {"eos_token_id": 0}))
    settings = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(settings | {"eos_token": "<|endoftext|>"}))


def tool_results_dropped(model: Path) -> None:
    """The template renders a tool's turn without what the tool said."""
    edit(
        model / "chat_template.jinja",
        (
            "{%- else -%}\n    {{- message.content or '' -}}",
            "{%- elif message.role != 'tool' -%}\n    {{- message.content or '' -}}",
        ),
    )


def tools_not_rendered(model: Path) -> None:
    """The template takes tools and never shows them to the model."""
    edit(model / "chat_template.jinja", ("{%- if tools -%}", "{%- if tools and false -%}"))


CONFIGURATION = ("fail", "configuration")
TWINS: list[tuple[Callable[[Path], None], Found]] = [
    (no_parser_inferred, {"tool-call": CONFIGURATION, "tool-call-streamed": CONFIGURATION}),
    (wrong_parser_claimed, {"tool-call": CONFIGURATION, "tool-call-streamed": CONFIGURATION}),
    (thinking_markers_unknown, {"reasoning-apart": CONFIGURATION}),
    (
        end_of_turn_unknown,
        {
            "plain-chat": CONFIGURATION,
            "no-special-tokens": CONFIGURATION,
            "stream-equals-whole": CONFIGURATION,
        },
    ),
    (tool_results_dropped, {"tool-result-turn": CONFIGURATION}),
    (
        tools_not_rendered,
        {"tools-in-prompt": CONFIGURATION, "tool-call": CONFIGURATION, "tool-call-streamed": CONFIGURATION},
    ),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("harm", "expected"), TWINS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_harmed_twin_is_found_out(
    python: Path, tmp_path: Path, harm: Callable[[Path], None], expected: Found
) -> None:
    twin = Path(shutil.copytree(MODEL, tmp_path / "model"))
    harm(twin)
    report = run(python, twin)
    by_probe = found(report)
    assert {probe: by_probe[probe] for probe in expected} == expected, why(report)
    assert {blamed for _, blamed in by_probe.values()} <= {"configuration", None}, why(report)
    assert not report.passed
    assert [by_probe[name] for name in ("health", "model-listed", "stops-cleanly")] == [("pass", None)] * 3


def test_what_mlx_lm_is_said_to_lack_it_does_lack_and_a_temperature_that_did_not_arrive_is_missed(
    python: Path,
) -> None:
    document = DOCUMENT | {"parameters": {"model": "./model", "temperature": 1.5}}
    asked = (health, stop_strings, log_probabilities, sampling_arrives)
    with serve(get("mlx"), python, DOCUMENT, MODEL) as served:  # greedy
        report = validate(document, served, options=ProbeOptions(asked))
    assert [found(report)[probe.NAME] for probe in asked] == [("pass", None), *[("fail", "engine")] * 3], why(
        report
    )
    assert "goes on after it" in why(report)


def test_a_template_that_shows_the_last_turn_only_and_no_system(python: Path, tmp_path: Path) -> None:
    twin = Path(shutil.copytree(MODEL, tmp_path / "model"))
    edit(
        twin / "chat_template.jinja",
        ("'<|im_start|>system\\n' ~ preface", "'<|im_start|>system\\n'"),
        ("messages[headed:]", "messages[-1:]"),
    )
    asked = (health, system_role, history, token_limit)
    with serve(get("mlx"), python, DOCUMENT, twin) as served:
        report = validate(DOCUMENT, served, options=ProbeOptions(asked), offers=get("mlx").offers)
    outcomes = [("pass", None), CONFIGURATION, CONFIGURATION, ("pass", None)]
    assert [found(report)[probe.NAME] for probe in asked] == outcomes, why(report)


def test_a_name_that_is_not_served_is_the_configurations_fault(python: Path) -> None:
    with serve(get("mlx"), python, DOCUMENT, MODEL) as served:
        served.model = "someone/else"
        report = validate(DOCUMENT, served)
    by_probe = found(report)
    assert by_probe["model-listed"] == CONFIGURATION
    assert by_probe["plain-chat"] == CONFIGURATION, why(report)


def test_an_engine_that_dies_meanwhile_is_blamed(python: Path) -> None:
    with serve(get("mlx"), python, DOCUMENT, MODEL) as served:
        served.stop()
        report = validate(DOCUMENT, served)
    assert found(report)["health"] == ("fail", "engine")
    assert not report.passed
