"""Shapes of conversations: what a template loses in some of them is found with the traits that explain it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.chat_template.request_coverage.compare import cause_of, covering, covering_shapes
from importer.chat_template.request_coverage.conversations import shaped_conversation
from importer.chat_template.request_coverage.findings import (
    BASE,
    FACTORS,
    LONG,
    PLACE,
    TRAITS,
    CoverageField,
    CoverageFinding,
    CoverageKind,
    CoverageSeverity,
    Shape,
    Trait,
    special,
    without,
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
T, F, K = Trait, CoverageField, CoverageKind
RESULT = "{{- '<tool_response>\\n' ~ said(m.content) ~ '\\n</tool_response>' -}}"
OPENING = "{{- '<|im_start|>' ~ m.role ~ '\\n' -}}"
WORDS = "{{- m.content or '' -}}"
THOUGHT = "{%- if m.reasoning_content %}"
CALL = "{%- for call in m.tool_calls or [] -%}"
TURNS = "{%- for m in turns -%}"
TOOL = "{%- for tool in tools -%}"


def harmed(**changes: str) -> str:
    """Return the sound template with each named text replaced."""
    text = SOUND
    for name, new in changes.items():
        assert text.count(globals()[name]) == 1
        text = text.replace(globals()[name], new)
    return text


def in_shapes(found: TemplateAnalysis) -> list[CoverageFinding]:
    assert found.request_coverage is not None
    return [finding for finding in found.request_coverage.findings if finding.shape]


HARMS: Mapping[str, tuple[str, CoverageKind, CoverageField | None, Shape]] = {
    "results without a name are empty": (
        harmed(RESULT=RESULT.replace("said(m.content)", "(said(m.content) if m.name else '')")),
        K.LOST, F.RESULT, (T.RESULTS_UNNAMED,),
    ),
    "calls are lost beside words": (
        harmed(CALL=CALL.replace("m.tool_calls or []", "(m.tool_calls or [])[m.content | length :]")),
        K.LOST, F.CALL, (T.WORDS_BESIDE_CALLS,),
    ),
    "a tool with a least value vanishes": (
        harmed(TOOL=TOOL.replace(" -%}", " if 'minimum' not in tool | tojson -%}")),
        K.LOST, F.TOOL_NAME, (T.DEFAULTS,),
    ),
    "a thought goes beside a second call": (
        harmed(THOUGHT="{%- if m.reasoning_content and m.tool_calls | length < 2 %}"),
        K.LOST, F.REASONING, (T.TWO_CALLS,),
    ),
    "speakers with a name have no role": (
        harmed(OPENING="{{- '<|im_start|>' ~ (m.role if m.role == 'tool' else m.name or m.role) ~ '\\n' -}}"),
        K.LOST, F.ROLE, (T.NAMES,),
    ),
    "the last hundred turns are shown": (
        harmed(TURNS="{%- for m in turns[-100:] -%}"), K.LOST, F.USER, (T.HUNDREDS_OF_TURNS,),
    ),
    "a default breaks the rendering": (
        harmed(TOOL=TOOL + "{%- set n = '' if 'default' not in tool | tojson else tool.no.thing -%}"),
        K.FAILS, None, (T.DEFAULTS,),
    ),
    "a block renders the rest of the turns": (
        harmed(
            TURNS="{%- macro rest(turns) -%}{%- for m in turns[:1] -%}",
        ).replace(
            "{{- '<|im_end|>\\n' -}}\n{%- endfor -%}\n{%- if add_generation_prompt",
            "{{- '<|im_end|>\\n' -}}\n{%- endfor -%}{%- if turns -%}{{- rest(turns[1:]) -}}{%- endif -%}"
            "{%- endmacro -%}{{- rest(turns) -}}\n{%- if add_generation_prompt",
        ),
        K.FAILS, None, (T.HUNDREDS_OF_TURNS,),
    ),
    "two traits together lose the system turn": (
        SOUND.replace(
            "{%- set turns", "{%- set system = '' if turned and named else system -%}{%- set turns"
        ).replace(
            "{%- set system = said",
            "{%- set turned = messages[-1].role == 'tool' -%}"
            "{%- set named = messages[0].name is defined -%}{%- set system = said",
        ),
        K.LOST, F.SYSTEM, (T.RESULT_LAST, T.NAMES),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", one_of_each(HARMS, tier="slow"))
def test_what_some_shapes_lose_is_an_error_with_its_traits(name: str) -> None:
    text, kind, place, traits = HARMS[name]
    found = analysed(text)
    assert found.request_coverage is not None
    findings = [f for f in found.request_coverage.findings if (f.kind, f.field) == (kind, place)]
    assert findings, found.request_coverage.findings
    assert all(finding.severity is CoverageSeverity.ERROR for finding in findings)
    if traits:
        assert traits in [f.shape for f in findings], findings
    assert len(found.request_coverage.findings) <= 7, found.request_coverage.findings
    outcome = judge_template_coverage(found, PROMISE)
    assert isinstance(outcome, Fail)
    assert outcome.attribution == "configuration"
    for finding in found.request_coverage.findings:
        assert CoverageFinding.from_json(finding.to_json()) == finding
        assert len(render(finding.reason)) < 200


CHOICES: Mapping[str, str] = {
    "no developers": harmed(TURNS=TURNS.replace(" -%}", " if m.role != 'developer' -%}")),
    "no past thoughts": harmed(THOUGHT="{%- if m.reasoning_content and m.tool_calls %}"),
    "no words beside calls": harmed(WORDS="{{- m.content if not m.tool_calls -}}"),
    "developers refused": harmed(
        TURNS=TURNS + "{%- if m.role == 'developer' -%}{{ raise_exception('who?') }}{%- endif -%}"
    ),
    "tools need a description": harmed(
        TOOL=TOOL + "{%- if not tool.function.description -%}{{ raise_exception('what?') }}{%- endif -%}"
    ),
    "names are shown": harmed(OPENING="{{- '<|im_start|>' ~ m.role ~ ' ' ~ (m.name or '') ~ '\\n' -}}"),
    "names beside another sign of the role": harmed(
        OPENING="{{- '<|' ~ m.role ~ '|>' ~ (m.name or m.role) ~ '\\n' -}}"
    ),
}


@pytest.mark.parametrize("name", one_of_each(CHOICES, tier="slow"))
def test_what_no_shape_shows_or_the_template_refuses_is_its_choice(name: str) -> None:
    found = analysed(CHOICES[name])
    assert [f for f in in_shapes(found) if f.severity is CoverageSeverity.ERROR] == []


def test_a_refusal_has_the_words_of_the_template_and_its_trait() -> None:
    found = in_shapes(analysed(CHOICES["tools need a description"]))
    refused = {f.shape: f.words for f in found if f.kind is K.REFUSED}
    assert refused == {(T.NO_DESCRIPTION,): "what?", (T.NULL_DESCRIPTION,): "what?"}


DEMANDS: Mapping[str, tuple[str, set[Shape]]] = {
    "properties of parameters": ("tool.function.parameters.properties.x",
        {(T.NO_PARAMETERS,), (T.NULL_PARAMETERS,), (T.NO_PROPERTIES,)}),
    "a text for a description": ("'# ' + tool.function.description",
        {(T.NO_DESCRIPTION,), (T.NULL_DESCRIPTION,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", one_of_each(DEMANDS, tier="slow"))
def test_what_a_template_breaks_without_is_a_warning_and_no_failure(name: str) -> None:
    """A client can send it; vendors' templates demand it, too."""
    demanded, traits = DEMANDS[name]
    found = analysed(harmed(TOOL=TOOL + "{%- set n = " + demanded + " -%}"))
    assert found.request_coverage is not None
    broken = [f for f in in_shapes(found) if f.kind is K.FAILS]
    assert {f.shape for f in broken} == traits
    assert all(f.severity is CoverageSeverity.WARNING and f.words for f in broken)
    outcome = judge_template_coverage(found, PROMISE)
    assert isinstance(outcome, Pass)
    assert len(outcome.notes) == len(broken)


@pytest.mark.slow
def test_a_second_template_for_tools_is_measured_by_the_first() -> None:
    older = (
        "{%- for m in messages -%}{{- '<|im_start|>' ~ m.role ~ '\\n' ~ (m.content or '') -}}"
        "{{- '<|im_end|>\\n' -}}{%- endfor -%}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' -}}{% endif -%}"
    )
    found = analysed(older, plain=SOUND)
    assert found.request_coverage is not None
    assert found.request_coverage.tools == "lost"
    lost = {f.field for f in in_shapes(found) if f.shape == (T.TOOL_TEMPLATE,)}
    assert F.TOOL_NAME in lost
    alone = analysed(older)
    assert alone.request_coverage is not None
    assert (alone.request_coverage.tools, in_shapes(alone)) == ("none", [])


def test_each_trait_stands_alone_and_with_each_other_that_it_goes_with() -> None:
    made = covering_shapes()
    assert len(made) < 60
    simple = {special(shape) for shape in made}
    assert () in simple
    assert all(any(trait in shape for shape in made) for levels in FACTORS for trait in levels)
    pairs = {frozenset(pair) for shape in made for pair in combinations(shape, 2)}
    assert frozenset({T.DEVELOPER, T.NO_PARAMETERS}) in pairs
    assert frozenset({T.WORDS_BESIDE_CALLS, T.TWO_ROUNDS}) in pairs
    assert frozenset({T.NO_TOOLS, T.NESTED}) not in pairs
    assert sum(any(trait in shape for trait in LONG) for shape in made) == len(LONG)
    for shape in made:
        assert [PLACE[trait] for trait in shape] == [*range(len(FACTORS))]
        texts = [mark.text for mark in shaped_conversation(shape).marks]
        assert len(texts) == len({*texts}) > 0


def test_each_trait_has_words() -> None:
    assert {*TRAITS} == {trait.value for trait in Trait}


LEVELS = st.lists(st.integers(1, 4), min_size=2, max_size=5)


@given(LEVELS)
def test_every_pair_of_levels_is_covered_by_few_rows(sizes: list[int]) -> None:
    factors = [range(size) for size in sizes]
    rows = covering(factors, lambda chosen: tuple(chosen.get(i, 0) for i in range(len(sizes))))
    for one, two in combinations(range(len(sizes)), 2):
        assert {(row[one], row[two]) for row in rows} == {*product(factors[one], factors[two])}
    largest = sorted(sizes)[-2:]
    assert len(rows) <= sum(sizes) + 2 * largest[0] * largest[1]


def test_a_cause_is_the_fewest_traits_that_no_whole_shape_has() -> None:
    system = tuple(T.SYSTEM if trait is T.NO_LEAD else trait for trait in BASE)
    named = tuple(T.NAMES if trait is T.NO_NAMES else trait for trait in BASE)
    both = tuple(T.NAMES if trait is T.NO_NAMES else trait for trait in system)
    assert cause_of(both, [BASE, named]) == (T.SYSTEM,)
    assert cause_of(both, [BASE, named, system]) == (T.SYSTEM, T.NAMES)
    assert cause_of(BASE, [system, both]) == (T.NO_LEAD,)
    assert without(both, T.NAMES) == system


def test_a_document_without_tools_is_not_judged_by_them() -> None:
    found = analysed(HARMS["a default breaks the rendering"][0])
    assert isinstance(judge_template_coverage(found, Expectations()), Pass)
