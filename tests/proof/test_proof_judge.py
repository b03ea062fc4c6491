"""The judge: what was written and read back passes, and nothing else does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from importer.chat_template.samples import Sample, SampleCall
from importer.engines.deaths import ParserFailure
from importer.engines.parsers import ReadCall, Reading
from importer.proof.verdicts import judge_reasoning, judge_tool, same
from importer.reasons import Reason
from importer.sentences import render

SCHEMA = {
    "count": {"type": "integer"}, "text": {"type": "string"}, "any": {}, "flag": {"type": "boolean"},
}  # fmt: skip
TOOLS = ({"type": "function", "function": {"name": "act", "parameters": {"properties": SCHEMA}}},)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
calls = st.builds(SampleCall, st.text(min_size=1), st.dictionaries(st.text(), values, max_size=4))


def sample(*written: SampleCall, **more: Any) -> Sample:
    return Sample("case", "prompt", "completion", calls=written, tools=TOOLS, **more)


def read(*written: SampleCall) -> Reading:
    return Reading(tuple(ReadCall(c.name, json.dumps(c.arguments)) for c in written))


def says(reason: Reason | None) -> str:
    return "" if reason is None else render(reason)


def raw(arguments: str, name: str = "act") -> Reading:
    return Reading((ReadCall(name, arguments),))


@given(st.lists(calls, max_size=4), st.booleans())
def test_what_was_written_and_read_back_passes(written: list[SampleCall], as_text: bool) -> None:
    assert judge_tool(sample(*written, text_arguments=as_text), read(*written)) is None


@given(calls, st.text(), values)
def test_an_argument_changed_added_or_lost_fails(call: SampleCall, key: str, value: Any) -> None:
    assume(key not in call.arguments or not same(call.arguments[key], value))
    other = SampleCall(call.name, {**call.arguments, key: value})
    assert judge_tool(sample(call), read(other))
    assert judge_tool(sample(other), read(call))


@given(calls, calls)
def test_another_name_fails(one: SampleCall, two: SampleCall) -> None:
    assume(one.name != two.name)
    assert "name" in says(judge_tool(sample(one), read(SampleCall(two.name, one.arguments))))


@given(st.lists(calls, min_size=1, max_size=3))
def test_a_call_too_many_or_too_few_fails(written: list[SampleCall]) -> None:
    assert judge_tool(sample(*written), read(*written[1:]))
    assert judge_tool(sample(*written[1:]), read(*written))


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "NaN", "{'count': 1}", "[" * 100_000])
def test_arguments_that_are_no_object_fail(text: str) -> None:
    assert judge_tool(sample(SampleCall("act", {})), raw(text))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (1, 1.0, True), (True, 1, False), (1, True, False), (False, 0, False), (None, False, False),
        (None, 0, False), ("1", 1, False), ([1, 2], [1.0, 2], True), ([1, 2], [2, 1], False),
        ([True], [1], False), ({"a": True}, {"a": 1}, False), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([], {}, False), (10**400, 10**400, True), (10**400, 1.5, False), (10**12, 10**12 + 1, False),
    ],
)  # fmt: skip
def test_equal_as_json(one: Any, other: Any, alike: bool) -> None:
    assert same(one, other) is alike
    assert same(other, one) is alike


@pytest.mark.parametrize(
    ("written", "got", "passes"),
    [
        ({"any": 3}, {"any": "3"}, True),  # the schema says nothing, so text is all there is
        ({"any": True}, {"any": "True"}, True),
        ({"any": {"k": "é"}}, {"any": '{"k": "é"}'}, True),
        ({"any": {"k": 1}}, {"any": '{"k": 2}'}, False),
        ({"any": 3}, {"any": "4"}, False),
        ({"text": "3"}, {"text": 3}, False),  # a string must stay one
        ({"count": 3}, {"count": "3"}, False),  # the schema says integer, so a parser could know
        ({"flag": True}, {"flag": "true"}, False),
        ({"count": 3}, {"count": 3}, True),
    ],
)
def test_arguments_printed_as_text_are_judged_with_the_schema(written: Any, got: Any, passes: bool) -> None:
    reading = raw(json.dumps(got))
    assert (judge_tool(sample(SampleCall("act", written), text_arguments=True), reading) is None) is passes
    assert (judge_tool(sample(SampleCall("act", written)), reading) is None) is (written == got)


def test_beside_a_broken_call_more_may_be_read() -> None:
    good, broken = SampleCall("act", {"count": 1}), SampleCall("act", {"text": "half"})
    loose = sample(good, at_least=True)
    assert judge_tool(loose, read(good)) is None
    assert judge_tool(loose, read(broken, good)) is None
    assert says(judge_tool(loose, read(broken))) == "read no call where one call stood"
    assert says(judge_tool(loose, Reading())) == "read no call where one call stood"
    assert says(judge_tool(loose, read(good, good))) == "read 2 calls where one call stood"
    assert judge_tool(replace(loose, at_least=False), read(broken, good))


def test_an_exception_is_a_failure_whatever_was_read() -> None:
    reading = replace(read(SampleCall("act", {})), error=Reason(ParserFailure.RAISED, words="ValueError: no"))
    assert says(judge_tool(sample(SampleCall("act", {})), reading)) == "ValueError: no"
    assert says(judge_reasoning(sample(), reading)) == "ValueError: no"


def test_an_answer_without_calls_must_come_back() -> None:
    plain = sample(content="Calm and clear.")
    assert judge_tool(plain, Reading(content=" Calm and clear.\n")) is None
    assert says(judge_tool(plain, Reading(content=None))) == "did not return the answer as content"
    assert says(judge_tool(plain, read(SampleCall("act", {})))) == "read one call where no call stood"
    assert (
        judge_tool(
            sample(SampleCall("act", {}), content=""), replace(read(SampleCall("act", {})), content="x")
        )
        is None
    )


@given(st.text(min_size=1).map(str.strip), st.text(min_size=1).map(str.strip))
def test_reasoning_and_answer_are_told_apart(thought: str, answer: str) -> None:
    assume(thought != answer and thought and answer)
    case = sample(reasoning=thought, content=answer)
    assert judge_reasoning(case, Reading(reasoning=f"\n{thought}\n", content=f"\n{answer}")) is None
    assert says(judge_reasoning(case, Reading(content=f"{thought}\n{answer}"))) == "read no reasoning"
    assert judge_reasoning(case, Reading(reasoning=answer, content=thought))
    assert says(judge_reasoning(case, Reading(reasoning=thought))) == "left no content"


def test_no_reasoning_is_something_to_read_back() -> None:
    plain = sample(reasoning="", content="Yes.")
    assert judge_reasoning(plain, Reading(content="Yes.")) is None
    assert "read the reasoning 'Yes.', not ''" in says(judge_reasoning(plain, Reading(reasoning="Yes.")))
    unjudged = sample()
    assert judge_reasoning(unjudged, Reading(reasoning="x", content="y")) is None


def test_reasons_are_short_and_on_one_line() -> None:
    reason = judge_tool(
        sample(SampleCall("act", {"text": "a\nb" * 500})), raw(json.dumps({"text": "x\n" * 500}))
    )
    assert reason is not None
    assert "\n" not in says(reason)
    assert len(says(reason)) < 200
