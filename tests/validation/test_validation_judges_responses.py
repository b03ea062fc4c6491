"""Judging OpenAI's responses: real streams of three engines, and each way in which one goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import ReplyError
from importer.validation.expectations import Expectations
from importer.validation.other_apis import RESPONSES, FormatReason, from_response, from_response_events
from importer.validation.probes.other_apis import judge_called, judge_greeting
from importer.validation.probes.reasoning import judge_reasoning_apart
from importer.validation.prompts import GREETING, SYSTEM, WEATHER, WEATHER_ANSWERED
from tests.judging import verdict

Event = dict[str, Any]
# Recorded by ``python -m tests.record_streams`` from the engines named, which served the demo model.
RECORDED = Path(__file__).parents[1] / "fixtures" / "responses"
ENGINES = ("mlx-vlm-0.7.10", "vllm-0.32.0", "vllm-mlx-0.6.0")
# (engine, case): what the recorded stream itself breaks.
BROKEN = {
    ("vllm-mlx-0.6.0", "weather"): FormatReason.PIECES_DIFFER,  # arguments whole, then in pieces again
    ("vllm-mlx-0.6.0", "thought-cut"): FormatReason.PIECES_DIFFER,  # the thought again, as the answer
}
SOUND = [(name, case) for name in ENGINES for case in ("greeting", "weather", "thought-cut")]


def recorded(engine: str, case: str, ending: str) -> bytes:
    return (RECORDED / engine / f"{case}.{ending}").read_bytes()


def events(engine: str = "vllm-0.32.0", case: str = "weather") -> list[Event]:
    """The events of a recorded stream, without their names."""
    lines = recorded(engine, case, "sse").decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def wire(sent: list[Event]) -> bytes:
    return b"".join(f"event: {e.get('type')}\ndata: {json.dumps(e)}\n\n".encode() for e in sent)


def broken_by(body: bytes) -> FormatReason:
    with pytest.raises(ReplyError) as raised:
        from_response_events(body)
    assert str(raised.value)
    return raised.value.reason.kind  # type: ignore[return-value]


def test_every_engine_with_the_endpoint_is_recorded() -> None:
    assert tuple(sorted(folder.name for folder in RECORDED.iterdir())) == ENGINES


@pytest.mark.parametrize(("engine", "case"), [pair for pair in SOUND if pair not in BROKEN])
def test_whole_and_streamed_are_one_reply(engine: str, case: str) -> None:
    whole, streamed = (
        from_response(recorded(engine, case, "json")),
        from_response_events(recorded(engine, case, "sse")),
    )
    for part in ("content", "reasoning"):
        assert getattr(whole, part).strip() == getattr(streamed, part).strip()
    assert [(c.name, c.arguments) for c in whole.tool_calls] == [
        (c.name, c.arguments) for c in streamed.tool_calls
    ]
    assert (whole.finish_reason, whole.usage) == (streamed.finish_reason, streamed.usage)


@pytest.mark.parametrize(("engine", "case"), BROKEN)
def test_what_an_engines_stream_breaks(engine: str, case: str) -> None:
    assert from_response(recorded(engine, case, "json")).usage.prompt
    assert broken_by(recorded(engine, case, "sse")) is BROKEN[engine, case]


def test_a_recorded_answer_passes() -> None:
    for engine in ENGINES:
        for reply in (
            from_response(recorded(engine, "greeting", "json")),
            from_response_events(recorded(engine, "greeting", "sse")),
        ):
            assert verdict(judge_greeting(reply)) == verdict(judge_reasoning_apart(reply)) == "pass"
        called = from_response(recorded(engine, "weather", "json"))
        assert verdict(judge_called(called)) == "pass"
        assert from_response(recorded(engine, "thought-cut", "json")).finish_reason == "length"


def without(kind: str) -> Callable[[list[Event]], list[Event]]:
    return lambda sent: [event for event in sent if event["type"] != kind]


def changed(kind: str, **fields: Any) -> Callable[[list[Event]], list[Event]]:
    return lambda sent: [{**event, **fields} if event["type"] == kind else event for event in sent]


def ended_otherwise(sent: list[Event]) -> list[Event]:
    output = [item for item in sent[-1]["response"]["output"] if item["type"] != "function_call"]
    return [*sent[:-1], {**sent[-1], "response": {**sent[-1]["response"], "output": output}}]


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda sent: sent[1:], FormatReason.ORDER),
        (lambda sent: sent[:-1], FormatReason.ORDER),
        (lambda sent: [*sent[:5], *sent[6:]], FormatReason.PIECES_DIFFER),  # a piece is lost
        (lambda sent: [*sent[:5], sent[4], *sent[5:]], FormatReason.PIECES_DIFFER),  # one came twice
        (without("response.output_item.added"), FormatReason.OTHER_ITEM),
        (without("response.function_call_arguments.delta"), FormatReason.PIECES_DIFFER),
        (changed("response.output_text.delta", item_id="other"), FormatReason.OTHER_ITEM),
        (changed("response.output_text.delta", output_index=0), FormatReason.OTHER_ITEM),
        (changed("response.output_item.done", item={"type": "message"}), FormatReason.OTHER_ITEM),
        (ended_otherwise, FormatReason.PIECES_DIFFER),
    ],
)
def test_events_that_break_a_rule(harm: Callable[[list[Event]], list[Event]], expected: FormatReason) -> None:
    assert from_response_events(wire(events())).tool_calls
    assert broken_by(wire(harm(events()))) is expected


def test_events_go_by_their_names_and_may_end_with_done() -> None:
    body = wire(events())
    assert broken_by(body.replace(b"event: response.created", b"event: created")) is FormatReason.EVENT_NAME
    assert from_response_events(body + b"data: [DONE]\n\n") == from_response_events(body)
    nameless = b"".join(line for line in body.splitlines(keepends=True) if not line.startswith(b"event"))
    assert from_response_events(nameless) == from_response_events(body)


@pytest.mark.parametrize(
    "broken",
    [
        b"[]",
        b"{",
        b'{"object": "response"}',
        b'{"object": "chat.completion", "output": []}',
        b'{"object": "response", "output": [{"type": "message"}]}',
        b'{"object": "response", "output": ["x"]}',
        b'{"object": "response", "output": [{"type": "message", "id": "m", "content": "x"}]}',
        b'{"object": "response", "error": {"message": "boom"}, "output": []}',
    ],
)
def test_what_is_no_response(broken: bytes) -> None:
    with pytest.raises(ReplyError):
        from_response(broken)


@pytest.mark.parametrize("kind", ["error", "response.failed"])
def test_an_error_within_a_stream(kind: str) -> None:
    failed = {"type": kind, "response": {"error": {"message": "boom"}}, "message": "boom"}
    with pytest.raises(ReplyError, match="boom"):
        from_response_events(wire([*events()[:5], failed]))


GOOD = events()
ODD = st.recursive(st.none() | st.integers() | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3))


@given(
    st.lists(st.integers(0, len(GOOD) - 1), max_size=12),
    st.sampled_from(sorted({key for event in GOOD for key in event})),
    ODD,
    st.binary(max_size=40),
)
def test_nothing_else_is_raised(order: list[int], key: str, value: object, junk: bytes) -> None:
    harmed = [{**event, key: value} if key in event else event for event in GOOD]
    for body in (wire([GOOD[i] for i in order]), wire(harmed), junk, b"data: " + junk):
        for read in (from_response_events, from_response):
            with suppress(ReplyError):
                read(body)


def test_the_request_has_the_formats_shape() -> None:
    (tool,) = RESPONSES.body(WEATHER)["tools"]
    assert (tool["type"], tool["name"], tool["parameters"]["required"]) == (
        "function",
        "get_weather",
        ["location"],
    )
    system, user = RESPONSES.body(SYSTEM)["input"]
    assert (system["role"], user["role"]) == ("system", "user")
    _, call, result = RESPONSES.body(WEATHER_ANSWERED)["input"]
    assert (call["type"], result["type"]) == ("function_call", "function_call_output")
    assert call["call_id"] == result["call_id"]
    assert json.loads(call["arguments"]) == {"location": "Paris"}
    assert "tools" not in RESPONSES.body(GREETING)


@pytest.mark.parametrize("slow", [None, 60])
def test_an_answer_has_the_room_that_it_has_in_the_chat(
    slow: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that writes on by chance had 4,096 tokens here: a slow engine answered after the time limit."""
    sent: list[dict[str, object]] = []

    def record(_self: Client, _path: str, body: dict[str, object], _log: object) -> bytes:
        sent.append(body)
        return recorded("vllm-0.32.0", "greeting", "json")

    monkeypatch.setattr(Client, "read", record)
    promise = Expectations(max_tokens=4096, plain=slow)
    RESPONSES.ask(Context(promise, "m", Client("http://127.0.0.1:1")), GREETING)
    assert sent[0]["max_output_tokens"] == promise.limit(GREETING.tokens) < 4096
