"""Request coverage: planted faults are found with their place, and sound templates have no finding."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.chat_template.conventions import OWN_CALLS, wrap
from importer.chat_template.find import Template
from importer.chat_template.override import TemplateOverride, by_name, is_name, template_of
from importer.chat_template.request_coverage import conversations
from importer.chat_template.request_coverage.compare import judge
from importer.chat_template.request_coverage.conversations import USERS, Mark, calling, offering, plain
from importer.chat_template.request_coverage.findings import (
    CoverageField,
    CoverageFinding,
    CoverageKind,
    CoverageSeverity,
    RequestCoverage,
)
from importer.chat_template.vocabulary import Vocabulary
from importer.errors import UsageError
from importer.sentences import render
from tests import template_texts as texts
from tests.analysing import RENDERER, VOCABULARY, analysed
from tests.coverage_faults import FAULTS, JSON, SOUND, Fault
from tests.coverage_twins import CUTS, MORE, TEXTS, TWINS, cut_short
from tests.tiers import one_of_each

ALONE = ("first tool only", "calls dropped", "permitted values dropped")


def request_coverage(text: str) -> RequestCoverage:
    found = analysed(text).request_coverage
    assert found is not None
    return found


@pytest.mark.parametrize(
    "text", one_of_each([SOUND, JSON, texts.CHATML_JSON, texts.XML_PARAMETERS, texts.KIMI_IDS], tier="slow")
)
def test_a_sound_template_has_no_finding(text: str) -> None:
    found = request_coverage(text)
    assert (found.tools, found.findings) == ("shown", ())
    assert found.checked > 100


@pytest.mark.parametrize(
    "fault", one_of_each((*FAULTS, *MORE), lambda fault: fault.kind), ids=lambda fault: fault.name
)
def test_a_planted_fault_is_found_at_its_place(fault: Fault) -> None:
    found = request_coverage(fault.text)
    places = [(f.kind, f.field, f.numbers) for f in found.findings]
    assert (fault.kind, fault.field, fault.numbers) in places
    # A lost tool is one finding, not one for each of its fields.
    assert len(found.findings) <= (1 if fault.name in ALONE else 8)
    gravest = max(f.severity is CoverageSeverity.ERROR for f in found.findings)
    assert (found.findings[0].severity is CoverageSeverity.ERROR) == gravest
    for finding in found.findings:
        assert CoverageFinding.from_json(finding.to_json()) == finding
        assert len(render(finding.reason).split()) <= 25


@pytest.mark.parametrize("mark", one_of_each(["\ufeff", "\u200b", "\u202e", "\ue000"], tier="slow"))
def test_characters_that_nobody_sees_are_found(mark: str) -> None:
    [finding] = request_coverage(mark + SOUND.lstrip()).findings
    assert (finding.kind, finding.words) == (CoverageKind.UNSEEN, f"U+{ord(mark):04X}")


def test_a_prompt_that_ends_an_answer_behind_a_result_is_found() -> None:
    """Of a call with words beside it alone: a plain question and a bare call are answered."""
    header = "if add_generation_prompt"
    assert header in SOUND
    changed = SOUND.replace(
        header, f"{header} and not (messages[-1].role == 'tool' and messages[-2].content)"
    )
    findings = [f for f in request_coverage(changed).findings if f.kind is CoverageKind.CLOSED]
    assert [(f.conversation, f.severity) for f in findings] == [("words-beside-call", CoverageSeverity.ERROR)]
    assert render(findings[0].reason).startswith("behind the result of a call the prompt ends with")


@pytest.mark.parametrize(
    ("where", "words"),
    [("messages[0].role == 'system'", "behind a system turn"), ("messages | length > 9", "behind earlier")],
)
def test_a_prompt_that_ends_an_answer_in_some_conversations_is_found(where: str, words: str) -> None:
    found = request_coverage(SOUND + "{%- if " + where + " %}{{- '<|im_end|>' -}}{%- endif %}").findings
    assert found[0].kind is CoverageKind.CLOSED
    assert render(found[0].reason).startswith(words)


def test_the_header_of_an_answer_is_no_end() -> None:
    """Some files name the token of a header among those that end generation."""
    ends = Vocabulary(stops=("<|im_start|>assistant", "<|im_end|>"))
    found = analysed(SOUND, ends).request_coverage
    assert found is not None
    assert found.findings == ()


@pytest.mark.parametrize(("field", "cut"), one_of_each(product(TEXTS, CUTS)))
def test_a_text_cut_anywhere_is_found(field: CoverageField, cut: str) -> None:
    found = request_coverage(cut_short(field, cut)).findings
    assert (CoverageKind.CUT, field) in [(f.kind, f.field) for f in found]


@pytest.mark.parametrize("name", one_of_each(TWINS, tier="slow"))
def test_another_way_of_writing_is_no_fault(name: str) -> None:
    assert TWINS[name] not in (SOUND, JSON)
    found = request_coverage(TWINS[name])
    assert (found.tools, found.findings) == ("shown", ())


@pytest.mark.parametrize(
    ("text", "tools", "severities"),
    one_of_each([
        (texts.CHATML, "none", {"notice"}),
        (texts.ALTERNATING, "none", {"notice", "warning"}),  # it refuses a second turn of one role
        (texts.IMAGES, "none", {"notice", "warning"}),  # it drops the turn of a developer
        (texts.PARTS_ONLY, "none", {"notice"}),
        (texts.REFUSES_TOOLS, "refused", {"warning"}),
        (texts.THINKING, "lost", {"error"}),
    ], lambda row: row[1], "slow"),
)  # fmt: skip
def test_what_a_template_does_by_design_is_a_notice(text: str, tools: str, severities: set[str]) -> None:
    found = request_coverage(text)
    assert found.tools == tools
    assert {f.severity.value for f in found.findings} == severities


def test_reasoning_of_past_turns_may_go() -> None:
    past = SOUND.replace("{%- if m.reasoning_content %}", "{%- if m.reasoning_content and m.tool_calls %}")
    assert request_coverage(past).findings == ()


APPENDS = "{%- set l = [] %}{%- for m in messages %}{%- set _ = l.append(m) %}{%- endfor %}"
NEEDS_TOOLS = "{%- if tools | length == 0 %}{{ raise_exception('needs tools') }}{%- endif %}"
ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = i * j %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    ("text", "tools", "kind", "words"),
    [
        ("{% if %}", "broken", CoverageKind.SYNTAX, "Expected an expression"),
        (APPENDS + SOUND, "broken", CoverageKind.FAILS, "access to attribute 'append'"),
        (
            "{{ ''.__class__.__mro__ }}" + SOUND,
            "broken",
            CoverageKind.FAILS,
            "access to attribute '__class__'",
        ),
        (NEEDS_TOOLS + SOUND, "shown", CoverageKind.FAILS, "object of type 'NoneType' has no len()"),
        pytest.param(ENDLESS + SOUND, "broken", CoverageKind.TOO_COSTLY, "", marks=pytest.mark.slow),
    ],
)
def test_a_template_that_no_server_renders_has_one_error(
    text: str, tools: str, kind: CoverageKind, words: str
) -> None:
    found = request_coverage(text)
    assert found.tools == tools
    [finding] = found.findings
    assert (finding.kind, finding.severity, finding.conversation) == (kind, CoverageSeverity.ERROR, "bare")
    assert finding.words.startswith(words)


def test_a_template_that_changes_a_list_for_tools_alone_fails_for_tools() -> None:
    found = request_coverage("{%- if tools %}" + APPENDS + "{%- endif %}" + SOUND)
    assert found.tools == "refused"
    assert all("append" in f.words for f in found.findings if f.severity is CoverageSeverity.ERROR)
    assert CoverageSeverity.ERROR in {f.severity for f in found.findings}


# Each text comes back from a prompt that holds it raw or as JSON; whatever else is done to it is named.

MARK = USERS[0]
AROUND = st.text(alphabet=" \n\"'<>{}x", max_size=20)


@given(AROUND, AROUND, st.booleans())
def test_raw_and_json_are_unaltered(before: str, after: str, ascii_only: bool) -> None:
    import json

    assert judge(MARK, before + MARK.text + after) is None
    found = judge(MARK, before + json.dumps(MARK.text, ensure_ascii=ascii_only) + after)
    assert found is (CoverageKind.ASCII_ESCAPED if ascii_only else None)


@given(st.integers(0, len(MARK.text) - 1), st.sampled_from(["", "é", "\\", "&amp;"]))
def test_one_character_less_or_other_is_found(at: int, other: str) -> None:
    changed = MARK.text[:at] + other + MARK.text[at + 1 :]
    assert (judge(MARK, f"<|user|>{changed}<|end|>") is None) == (changed == MARK.text)


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_nonces_of_two_places_differ(one: str, other: str) -> None:
    assert (conversations.nonce(one) == conversations.nonce(other)) == (one == other)
    assert conversations.nonce(one).isidentifier()


def test_no_nonce_stands_in_another() -> None:
    marks: set[Mark] = {m for c in (*plain(), *offering(), *calling(thinks=True)) for m in c.marks}
    words = [word for mark in {m.ends: m for m in marks}.values() for word in dict.fromkeys(mark.ends)]
    assert len(words) == len(set(words))
    assert not [(a, b) for a in words for b in words if a != b and a in b]


# A template that writes calls and hides the tools gets them before it; its calls stay as they are.

HIDES = SOUND.replace("{%- if tools -%}", "{%- if false -%}")
AS_TEXT = JSON.replace("{%- if tools -%}", "{%- if false -%}").replace(
    "(call.function.arguments | tojson)", "call.function.arguments"
)
NO_SYSTEM = HIDES.replace(
    "{%- for m in turns -%}",
    "{%- if system %}{{ raise_exception('none') }}{% endif -%}{%- for m in turns -%}",
)


@pytest.mark.parametrize(
    "own", one_of_each([HIDES, AS_TEXT, NO_SYSTEM, texts.THINKING, texts.NULL_CONTENT], tier="slow")
)
def test_tools_offered_before_own_calls_reach_the_prompt(own: str) -> None:
    own = own.replace(texts.OFFER, "")
    bare = analysed(own)
    assert bare.request_coverage is not None
    assert bare.request_coverage.tools == "lost"
    template = template_of(by_name(OWN_CALLS), Template(own, "own"), VOCABULARY, RENDERER)
    study = analysed(template.text)
    assert study.request_coverage is not None
    assert study.request_coverage.tools == "shown"
    lost = {CoverageKind.TOOLS_LOST, CoverageKind.TEXT_ARGUMENTS}
    assert not lost & {f.kind for f in study.request_coverage.findings}
    case = {s.case: s.completion for s in bare.samples}
    assert {s.case: s.completion for s in study.samples}["one-call"] == case["one-call"]
    example = case["one-call"].replace("get_weather", "first_function").replace("city", "name")
    assert example.replace("Paris", "value").strip() in study.tools_prompt


def test_a_template_without_calls_gets_no_tools_of_its_own() -> None:
    with pytest.raises(UsageError) as caught:
        template_of(by_name(OWN_CALLS), Template(texts.CHATML, "own"), VOCABULARY, RENDERER)
    assert caught.value.details["problem"].kind is wrap.OwnCallsReason.NO_CALLS


def test_a_template_of_the_repositorys_set_is_taken_by_its_name() -> None:
    override = by_name("repository:tools")
    assert isinstance(override, TemplateOverride)
    assert is_name("repository:tools")
    own = Template(HIDES, "own")
    found = template_of(override, own, VOCABULARY, RENDERER, {"default": HIDES, "tools": SOUND})
    assert found.text == SOUND
    with pytest.raises(UsageError) as caught:
        template_of(override, own, VOCABULARY, RENDERER, {"default": HIDES})
    assert caught.value.details["problem"].fields["known"] == ("repository:default",)


def test_variables_have_their_values_and_their_default() -> None:
    keep = "{% if keep %}{{ messages[1].reasoning_content }}{% endif %}"
    held = "{% if held is not defined or held %}k{% endif %}"
    effort = "{{ effort | default('low') }}{% if effort == 'high' %}!{% endif %}"
    found = [(one.name, one.values, one.default) for one in analysed(SOUND + keep + held + effort).variables]
    assert sorted(found) == [
        ("effort", ("high",), None), ("held", (True, False), True), ("keep", (True, False), False),
    ]  # fmt: skip


def test_a_lost_role_of_turns_is_an_error() -> None:
    changed = SOUND.replace("~ m.role ~", "~ (m.role if m.role == 'tool' else 'turn') ~")
    assert changed != SOUND
    first = request_coverage(changed).findings[0]
    assert (first.kind, first.field) == (CoverageKind.LOST, CoverageField.ROLE)
    assert first.severity is CoverageSeverity.ERROR


def test_severity_is_of_kind_and_field() -> None:
    def of(kind: CoverageKind, field: CoverageField | None = None) -> str:
        return CoverageFinding(kind, field).severity.value

    kinds, fields = CoverageKind, CoverageField
    ordinary = (fields.RESULT, fields.ENUM, fields.CALL, fields.ARGUMENT, fields.ANY_OF)
    assert {of(kinds.LOST, field) for field in ordinary} == {of(kinds.ALTERED, fields.USER)} == {"error"}
    assert of(kinds.TOOLS_LOST) == of(kinds.FAILS, fields.USER) == of(kinds.CLOSED) == "error"
    rare = (fields.DEVELOPER, fields.LATER_SYSTEM, fields.SECOND_SYSTEM, fields.WORDS_BESIDE_CALL)
    assert {of(kinds.LOST, field) for field in rare} == {"warning"}
    no_place = CoverageFinding(kinds.LOST, fields.SYSTEM, (1,), "system")  # in any conversation
    beside_tools = CoverageFinding(kinds.LOST, fields.SYSTEM, (1,), "tools-and-system")
    assert (no_place.severity.value, beside_tools.severity.value) == ("warning", "error")
    assert of(kinds.REFUSED, fields.DEVELOPER) == "warning"
    assert of(kinds.REFUSED, fields.CALL) == "notice"
    assert of(kinds.LOST, fields.REASONING) == "notice"
