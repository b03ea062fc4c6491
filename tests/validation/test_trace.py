"""The stages of an exchange: the first broken one has the part at fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.app.local_evidence import offline_parsers
from importer.engines import get, install
from importer.engines.parsers import ParserQuestion, ReadCall, Reading
from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import Proof
from importer.validation import cause
from importer.validation.calls import judge_unread
from importer.validation.evidence_sources import Drawn, OfflineParsers, as_reply
from importer.validation.outcome import Outcome, Pass, Stage, State, by_stage
from importer.validation.prompts import GREETING, GREETING_WITH_TOOL, WEATHER
from importer.validation.reply import Reply, ToolCall
from importer.validation.trace import _sound, parts
from tests.facts import as_reason
from tests.faults.bench import run
from tests.faults.registry import FAULTS
from tests.judging import MODEL, asked, rendering, said

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n</tool_call>'


def test_a_reading_and_an_answer_are_compared_by_what_a_client_gets() -> None:
    one = Reply(
        " Hello ", tool_calls=(ToolCall(0, "a", "f", '{"x": 1, "y": 2}'),), finish_reason="tool_calls"
    )
    other = Reply("Hello", tool_calls=(ToolCall(0, "b", "f", '{"y":2,"x":1}'),), finish_reason="stop")
    assert parts(one) == parts(other)
    assert parts(one) != parts(Reply("Hello"))
    assert parts(one) != parts(Reply("Hello", "Hm.", one.tool_calls))


@pytest.fixture(scope="module")
def offline() -> Iterator[OfflineParsers]:
    engine = install.need(get("mlx"))
    with offline_parsers("mlx", engine.python, Path(MODEL), None, None) as parsers:
        assert parsers is not None
        yield parsers


@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
def test_the_engines_own_parsers_read_a_text_without_the_engine(offline: OfflineParsers) -> None:
    pair = offline.in_use(ParserQuestion("hermes", None))
    assert pair.tool == "json_tools"  # mlx-lm infers it, whatever the document names
    whole = offline.read(Drawn("", CALL, WEATHER), pair)
    assert whole is not None
    reply = as_reply(whole, Reply(finish_reason="stop"))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("get_weather", '{"location": "Paris"}')
    ]
    assert reply.finish_reason == "tool_calls"
    plain = offline.read(Drawn("", "Hello!", GREETING), pair)
    assert plain is not None
    assert (plain.content, plain.calls) == ("Hello!", ())
    replay = offline.replay(Drawn("", CALL, WEATHER), pair)
    assert replay is not None
    assert replay.different == 0


@pytest.mark.parametrize(
    ("reading", "sound"),
    [
        (Reading(calls=(ReadCall("get_weather", '{"location": "Paris"}'),)), True),
        (Reading(calls=(ReadCall("get_weather", '"{}"'),)), False),
        (Reading(content=CALL), False),
        (Reading(content="Hello!"), False),  # the call is lost
        (Reading(error=as_reason("not read")), False),
    ],
)
def test_a_reading_is_sound_where_it_holds_the_call_that_was_written(reading: Reading, sound: bool) -> None:
    assert _sound(reading, Drawn("", CALL, WEATHER)) is sound


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
def test_a_text_that_no_proved_parser_reads_is_the_models() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "end-of-a-call-never-drawn")
    rows: dict[str, Any] = {row["probe"]: row for row in run(fault, "mlx")["outcomes"]}
    failed = rows["tool-call"]
    states = {one["stage"]: one["state"] for one in failed["cause"]["facts"]}
    assert failed["attribution"] == "model"
    assert states == {"template": "holds", "tokens": "holds", "drawn": "broken", "parsed": "broken",
                      "whole": "holds"}  # fmt: skip
    assert all(one["text"] and one["prompt"] == WEATHER.name for one in failed["cause"]["facts"])


PASSES = Pass(as_reason("no call"))
FENCED = '```json\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n```'


@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
@pytest.mark.parametrize(
    ("judged", "state", "attribution"), [(FENCED, "broken", "model"), (CALL, "holds", "engine")]
)
def test_the_judged_answer_is_traced_where_a_new_one_is_right(
    judged: str, state: State, attribution: str, offline: OfflineParsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model called a tool to say hello in one answer of several; the next one greeted."""

    def read(reply: Reply) -> Outcome:
        return (None if reply.tool_calls else judge_unread(reply, GREETING_WITH_TOOL)) or PASSES

    drawn = Reply("Hello!", "", (), "stop", logprobs=({"token": "Hello!"},))
    ctx = asked(
        lambda body: drawn if body.get("logprobs") else said(judged), monkeypatch, tool_parser="json_tools"
    )
    verdicts = (ParserVerdict("json_tools", "", ("call",), {}, ("call",)),)
    proof = Proof("mlx", "0.32.2", "", {"tool_parser": verdicts}, {}, inferred={"tool_parser": "json_tools"})
    with rendering(MODEL) as render:
        here = replace(ctx, render=render, offline=offline, proof=proof)
        outcome = cause.traced(here.judged(GREETING_WITH_TOOL, read), here)
    assert by_stage(outcome.facts)[Stage.PARSED].state == state
    assert outcome.attribution == attribution
