"""Limits of an engine: what the proof or the offers explain is not applicable, everything else stays."""

from __future__ import annotations

import pytest

from importer.proof.parser_verdict import JudgeReason, ParserVerdict, ProofReason
from importer.proof.result import Proof
from importer.reasons import Reason
from importer.validation import cause
from importer.validation.client import Client, Exchange
from importer.validation.context import Context
from importer.validation.expectations import CommonReason, Expectations
from importer.validation.outcome import Fail, NotApplicable, Stage
from importer.validation.probes.ends import cut_call, cut_thought
from importer.validation.probes.sampling import sampling_arrives
from importer.validation.probes.tools import _types
from importer.validation.remedy import WHOLE_ANSWERS
from tests.judging import words

CUT = {"thinking-cut": Reason(JudgeReason.NO_REASONING)}
LOSES = Reason(ProofReason.WHOLE_ONLY, cases=(Reason(ProofReason.NOT_REPLAYED),))
STREAMED = Fail(Reason(CommonReason.CALL_UNREAD), Stage.STREAM, WHOLE_ANSWERS, within=("streamed",))
THOUGHT = Fail(Reason(CommonReason.CALL_UNREAD), Stage.START)


def verdict(name: str, *, cut: bool = False, loses: bool = False, reads: bool = True) -> ParserVerdict:
    failed = {**(CUT if cut else {}), **({} if reads else {"one-call": Reason(JudgeReason.NO_CONTENT)})}
    return ParserVerdict(name, name, (), failed, ("one-call",), LOSES if loses else None)


def context(*verdicts: ParserVerdict, tools: bool = True, offers: frozenset[str] | None = None) -> Context:
    body = {"messages": [], "tools": [{}] if tools else []}
    keys = {"tool_parser": verdicts, "reasoning_parser": verdicts}
    return Context(
        Expectations(tool_parser="used", reasoning_parser="used", offers=offers, engine="vllm-mlx 0.6.0"),
        "m",
        Client("http://127.0.0.1:1"),
        proof=Proof("vllm-mlx", "0.6.0", "", keys, {}),
        log=[Exchange("POST", "/v1/chat/completions", body)],
    )


@pytest.mark.parametrize(
    ("failure", "verdicts", "limited"),
    [
        (STREAMED, (verdict("used", loses=True),), True),
        (STREAMED, (verdict("used", loses=True), verdict("other")), False),
        (STREAMED, (verdict("used", loses=True, reads=False),), False),
        (STREAMED, (verdict("used"),), False),
        (THOUGHT, (verdict("used", cut=True, loses=True),), False),
    ],
)
def test_what_no_parser_of_the_engine_does_is_its_limit(
    failure: Fail, verdicts: tuple[ParserVerdict, ...], limited: bool
) -> None:
    found = cause.settled(failure, context(*verdicts))
    if not limited:
        assert found is failure
    else:
        assert isinstance(found, NotApplicable)
        assert "no tool parser of vllm-mlx 0.6.0" in words(found)
        assert failure.reason in found.notes


@pytest.mark.parametrize("others", [(), ("other",)])
def test_a_parser_that_is_proved_to_miss_a_cut_thought_is_not_asked_for_one(others: tuple[str, ...]) -> None:
    found = cut_thought(context(verdict("used", cut=True), *map(verdict, others)))
    assert isinstance(found, NotApplicable)
    assert (found.remedy.fields["parser"] if found.remedy else None) == next(iter(others), None)


def test_a_streamed_answer_without_tools_is_no_limit_of_a_tool_parser() -> None:
    ctx = context(verdict("used", loses=True), tools=False)
    assert cause.settled(STREAMED, ctx) is STREAMED


def test_what_the_server_lacks_is_not_asked_for() -> None:
    hot = Expectations(sampling={"top_k": 1}, offers=frozenset())
    assert sampling_arrives.needs(hot)
    assert sampling_arrives.needs(Expectations(sampling={"top_k": 1})) is None
    lacking = context(offers=frozenset())
    assert isinstance(cut_call(lacking), NotApplicable)
    assert isinstance(_types(lacking), NotApplicable)
    assert len(lacking.log) == 1  # the one that the context comes with
