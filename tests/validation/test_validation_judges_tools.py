"""Judging what comes of tools: each judge passes the good answer and fails on the harm it is there for."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from importer.reasons import Reason
from importer.validation.context import tally
from importer.validation.errors import AnswerFailure, ExchangeError, ReplyError, RequestRefused, TimedOut
from importer.validation.expectations import Expectations, PromiseReason
from importer.validation.outcome import Stage, differs, holding, not_done
from importer.validation.probes.requests import (
    BOUND,
    REQUIRED,
    judge_bound,
    judge_forced,
    judge_most,
    malformed_requests,
    tool_choice,
)
from importer.validation.probes.tools import id_answered, judge_parallel_calls, tool_call
from importer.validation.prompts import GREETING, WEATHER
from importer.validation.reply import Reply, ToolCall, Usage
from tests.judging import asked, remedy, said, verdict, words


def calls(*made: tuple[str, Any], finish: str | None = "tool_calls", wrote: str = "") -> Reply:
    """An answer with these calls, beside what the model wrote."""
    listed = tuple(
        ToolCall(i, f"id{i}", name, a if isinstance(a, str) else json.dumps(a))
        for i, (name, a) in enumerate(made)
    )
    shown = ({"bytes": list(wrote.encode())},) if wrote else ()
    return Reply(tool_calls=listed, finish_reason=finish, logprobs=shown)


PARIS, ROME = ("get_weather", {"location": "Paris"}), ("get_weather", {"location": "Rome"})
BOTH = '[get_weather(location="Paris"), get_weather(location="Rome")]'


def test_a_question_for_two_that_is_answered_with_text() -> None:
    assert verdict(judge_parallel_calls(Reply(content=BOTH, finish_reason="stop"))) == "fail configuration"
    assert (
        verdict(judge_parallel_calls(Reply(content="Sunny.", finish_reason="stop"))) == "inconclusive model"
    )


def test_a_model_that_does_not_call_is_asked_the_first_question_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def answer(body: dict[str, Any]) -> Reply:
        seen.append(body["messages"][-1]["content"])
        return replace(said("I cannot look that up."), usage=Usage(10 * len(body["tools"]), 9))

    ctx = asked(answer, monkeypatch, tool_parser="x")
    assert verdict(tool_call.run(ctx)) == "inconclusive model"
    assert {*seen} == {WEATHER.messages[0]["content"]}


def test_what_a_model_does_not_do_beside_what_it_does_is_a_figure() -> None:
    did = holding("a call", 2, 2)
    declined = not_done("no call", trials=3)
    told = tally({"one call": did, "two calls": declined})
    assert (told.outcome, told.trials, told.agreeing, told.notes) == ("pass", 5, 2, (declined.reason,))
    none = tally({"one call": declined, "two calls": declined})
    assert (none.within, none.trials, none.agreeing) == (("one call",), 6, 6)
    lost = differs("calls", 0, 1, Stage.START)
    assert tally({"one call": did, "two calls": lost, "later": declined}).within == ("two calls",)
    silent = replace(declined, stage=Stage.MACHINE)
    assert verdict(tally({"one call": did, "two calls": silent})) == "inconclusive environment"


def test_a_required_call() -> None:
    assert verdict(judge_forced(calls(PARIS, finish="stop"), REQUIRED, None)) == "pass"
    said = Reply(content="Hello!", finish_reason="stop")
    assert verdict(judge_forced(said, REQUIRED, None)) == "fail engine"
    endless = replace(said, finish_reason="length")
    assert verdict(judge_forced(endless, REQUIRED, None)) == "inconclusive model"
    broken = calls(("get_weather", '{"location": '))
    assert verdict(judge_forced(broken, REQUIRED, None)) == "fail engine"


def test_tool_choice_needs_an_engine_that_knows_it() -> None:
    promise = Expectations(tool_parser="x", offers=frozenset({"stop"}))
    assert tool_choice.needs(promise) == Reason(PromiseReason.NOT_OFFERED, names=("tool-choice",), engine="")
    assert tool_choice.needs(Expectations(tool_parser="x")) is None
    # A parser that is data: vLLM answers 400, and the proof covers calls by the model's own choice alone.
    assert tool_choice.needs(Expectations(tool_parser="hf")) is not None


def test_a_result_goes_back_under_the_engines_own_id() -> None:
    prompt = id_answered(ToolCall(0, "chatcmpl-tool-7", "get_weather", '{"location": "Paris"}'))
    asked, answered = prompt.messages[-2:]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == "chatcmpl-tool-7"
    assert prompt.tools == WEATHER.tools


FITTING: dict[str, Any] = {"mark": "k7q2", "unit": "zorn", "amount": 4713, "code": "xzx"}


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        ({}, "pass"),
        ({"amount": 9}, "fail engine"),
        ({"unit": "metre"}, "fail engine"),
        ({"more": 1}, "fail engine"),
        ({"unit": "\n zorn"}, "inconclusive model"),  # formats in tags allow white space
        ({"amount": "4713"}, "inconclusive model"),  # and know no types
    ],
)
def test_arguments_that_a_strict_schema_binds(harm: dict[str, Any], expected: str) -> None:
    assert verdict(judge_bound(calls(("record", {**FITTING, **harm})), BOUND[0])) == expected
    assert verdict(judge_bound(calls(("record", '"in Paris"')), BOUND[0])) == "fail engine"  # nothing binds
    cut = calls(("record", '{"mark": '))
    assert verdict(judge_bound(cut, BOUND[0])) == "inconclusive model"


def test_one_call_where_one_is_allowed() -> None:
    once = partial(judge_most, most=1, option="parallel_tool_calls")
    assert verdict(once(calls(PARIS), WEATHER)) == "pass"
    assert "parallel_tool_calls" in remedy(once(calls(PARIS, ROME), WEATHER))


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        (RequestRefused(400, "no"), "pass"),
        (None, "pass"),  # answered as if well formed
        (RequestRefused(500, "no"), "fail engine"),
        (TimedOut(Reason(AnswerFailure.TIMED_OUT, seconds=45.0)), "fail engine"),
        (ReplyError(Reason(AnswerFailure.REPORTS_ERROR, says="no")), "fail engine"),  # with HTTP 200
    ],
)
def test_a_malformed_request_is_refused(
    came: ExchangeError | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        if came is not None and body.get("messages") != [*GREETING.messages]:
            raise came
        return said("Hello!")

    outcome = malformed_requests.run(asked(answer, monkeypatch))
    assert verdict(outcome) == expected
    assert "no messages" in words(outcome) or expected == "pass"
    assert ("as if well formed" in words(outcome)) == (expected == "pass")


def test_a_server_that_hangs_over_each_malformed_request_is_not_sent_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_for = list[object]()

    def answer(body: dict[str, Any]) -> Reply:
        if body.get("messages") != [*GREETING.messages]:
            asked_for.append(body)
            raise TimedOut(Reason(AnswerFailure.TIMED_OUT, seconds=45.0))
        return said("Hello!")

    assert verdict(malformed_requests.run(asked(answer, monkeypatch))) == "fail engine"
    assert len(asked_for) == 3  # two, and the first once more
