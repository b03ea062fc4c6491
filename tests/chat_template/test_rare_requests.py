"""Rare conversations: what they alone lose is a note, and the role of a turn is never lost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from importer.chat_template.request_coverage.conversations import rare
from importer.chat_template.request_coverage.findings import (
    RARE,
    CoverageField,
    CoverageFinding,
    CoverageKind,
    CoverageSeverity,
)
from importer.chat_template.study import TemplateAnalysis
from importer.sentences import render
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, Pass
from importer.validation.probes.prompt import judge_template_coverage
from tests.analysing import analysed
from tests.coverage_faults import SOUND
from tests.tiers import one_of_each

PROMISE = Expectations(tool_parser="hermes")
F, K = CoverageField, CoverageKind
RESULT = "{{- '<tool_response>\\n' ~ said(m.content) ~ '\\n</tool_response>' -}}"
OPENING = "{{- '<|im_start|>' ~ m.role ~ '\\n' -}}"
CALL = "{%- for call in m.tool_calls or [] -%}"
TOOL = "{%- for tool in tools -%}"


def harmed(**changes: str) -> str:
    """Return the sound template with each named text replaced."""
    text = SOUND
    for name, new in changes.items():
        assert text.count(globals()[name]) == 1
        text = text.replace(globals()[name], new)
    return text


def of_rare(found: TemplateAnalysis) -> list[CoverageFinding]:
    assert found.request_coverage is not None
    return [finding for finding in found.request_coverage.findings if finding.conversation in RARE]


HARMS: Mapping[str, tuple[str, CoverageKind, CoverageField | None, str]] = {
    "results without a name are empty": (
        harmed(RESULT=RESULT.replace("said(m.content)", "(said(m.content) if m.name else '')")),
        K.LOST, F.RESULT, "unnamed-result",
    ),
    "calls are lost beside words": (
        harmed(CALL=CALL.replace("m.tool_calls or []", "(m.tool_calls or [])[m.content | length :]")),
        K.LOST, F.CALL, "calls-and-words",
    ),
    "the system turn is lost beside a result": (
        SOUND.replace("~ system -}}", "~ (system if messages[-1].role != 'tool' else '') -}}"),
        K.LOST, F.SYSTEM, "system-and-result",
    ),
    "a tool needs a text for its description": (
        harmed(TOOL=TOOL + "{%- set n = '# ' + tool.function.description -%}"),
        K.FAILS, None, "no-description",
    ),
    "a tool needs parameters": (
        harmed(TOOL=TOOL + "{%- set n = tool.function.parameters.properties.x -%}"),
        K.FAILS, None, "null-parameters",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", one_of_each(HARMS, tier="slow"))
def test_what_rare_conversations_alone_lose_is_a_note_with_its_place(name: str) -> None:
    text, kind, place, within = HARMS[name]
    found = analysed(text)
    assert found.request_coverage is not None
    findings = {(f.kind, f.field, f.conversation): f for f in of_rare(found)}
    one = findings[kind, place, within]
    assert {f.severity for f in found.request_coverage.findings} <= {
        CoverageSeverity.WARNING, CoverageSeverity.NOTICE,
    }  # fmt: skip
    assert RARE[within] in render(one.reason)
    for finding in found.request_coverage.findings:
        assert CoverageFinding.from_json(finding.to_json()) == finding
        assert len(render(finding.reason)) < 250
    edited = judge_template_coverage(found, PROMISE, own=False)  # since the import
    assert isinstance(edited, Pass if kind is K.FAILS else Fail)


def test_the_role_of_a_turn_is_no_rare_loss() -> None:
    found = analysed(
        harmed(OPENING="{{- '<|im_start|>' ~ (m.role if m.role == 'tool' else 'turn') ~ '\\n' -}}")
    )
    assert found.request_coverage is not None
    (first, *_) = found.request_coverage.findings
    assert (first.kind, first.field, first.severity) == (K.LOST, F.ROLE, CoverageSeverity.ERROR)
    assert isinstance(judge_template_coverage(found, PROMISE), Fail)


def test_each_rare_conversation_has_words() -> None:
    assert {*RARE} == {one.name for one in rare(thinks=True)}


def test_a_document_without_tools_is_not_judged_by_them() -> None:
    found = analysed(HARMS["calls are lost beside words"][0])
    assert isinstance(judge_template_coverage(found, Expectations(), own=False), Pass)
