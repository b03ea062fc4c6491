"""Judging Anthropic's messages and images: real streams, and each way in which they go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.validation import other_apis
from importer.validation.errors import ReplyError, RequestRefused
from importer.validation.probes.other_apis import judge_called, judge_count_tokens, judge_greeting
from importer.validation.probes.tasks import judge_images
from importer.validation.prompts import WEATHER
from tests.judging import verdict

Event = dict[str, Any]
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 8, "output_tokens": 21}


def whole(*content: Event, stop: str = "end_turn", **more: Any) -> bytes:
    made = {"type": "message", "role": "assistant", "content": list(content), "stop_reason": stop}
    return json.dumps({**made, "usage": USAGE, **more}).encode()


def text(words: str) -> Event:
    return {"type": "text", "text": words}


def use(given: Any) -> Event:
    return {"type": "tool_use", "id": "call1", "name": "get_weather", "input": given}


def stream(*blocks: tuple[Event, list[Event]], stop: str = "end_turn") -> list[Event]:
    """The events of a good answer."""
    events: list[Event] = [{"type": "message_start", "message": {"usage": {**USAGE, "output_tokens": 0}}}]
    events.append({"type": "ping"})
    for index, (opening, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": opening})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 21}}
    return [*events, end, {"type": "message_stop"}]


def wire(events: list[Event]) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


THOUGHT = ({"type": "thinking", "thinking": ""}, [{"type": "thinking_delta", "thinking": "A greeting."}])
HELLO = (text(""), [{"type": "text_delta", "text": "Hel"}, {"type": "text_delta", "text": "lo!"}])
CALL = (
    use({}),
    [{"type": "input_json_delta", "partial_json": part} for part in ('{"location"', ': "Paris"}')],
)


def test_whole_and_streamed_are_one_reply() -> None:
    streamed = other_apis.from_events(wire(stream(THOUGHT, HELLO)))
    assert streamed == other_apis.from_message(
        whole({"type": "thinking", "thinking": "A greeting."}, text("Hello!"))
    )
    assert (streamed.content, streamed.reasoning, streamed.finish_reason) == ("Hello!", "A greeting.", "stop")
    assert (streamed.usage.prompt, streamed.usage.completion) == (11, 21)
    assert verdict(judge_greeting(streamed)) == "pass"


def test_a_call_whole_and_streamed() -> None:
    replies = (
        other_apis.from_message(whole(use({"location": "Paris"}), stop="tool_use")),
        other_apis.from_events(wire(stream(THOUGHT, CALL, stop="tool_use"))),
    )
    for reply in replies:
        assert verdict(judge_called(reply)) == "pass"
        assert json.loads(reply.tool_calls[0].arguments) == {"location": "Paris"}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (whole(text("Hello!<|im_end|>")), "fail engine"),  # where it stops, and shows it
        (whole(text("<think>A greeting.</think>Hello!")), "fail configuration"),
        (whole(text("")), "fail configuration"),  # 21 tokens, and nothing arrived
        (whole(text("Hello!"), stop="max_tokens"), "inconclusive model"),
    ],
)
def test_a_greeting_that_is_not_right(reply: bytes, expected: str) -> None:
    assert verdict(judge_greeting(other_apis.from_message(reply))) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (whole(text('<tool_call>{"name": "get_weather"}</tool_call>')), "fail configuration"),
        (whole(text("I cannot look that up.")), "inconclusive model"),
        (whole(use({"location": "Paris"})), "fail engine"),  # it does not stop for the tool
        (whole(use({"location": 3}), stop="tool_use"), "inconclusive model"),
    ],
)
def test_a_call_that_is_not_right(reply: bytes, expected: str) -> None:
    assert verdict(judge_called(other_apis.from_message(reply))) == expected


@pytest.mark.parametrize(
    "broken",
    [
        b"[]",
        b"{",
        json.dumps({"error": {"message": "boom"}}).encode(),
        whole(use('{"location": "Paris"}'), stop="tool_use"),  # encoded twice
        whole("Hello!"),  # type: ignore[arg-type]
        whole({"type": "text"}),
    ],
)
def test_what_is_no_message(broken: bytes) -> None:
    with pytest.raises(ReplyError):
        other_apis.from_message(broken)


GOOD = stream(THOUGHT, CALL, stop="tool_use")


@pytest.mark.parametrize(
    "harm",
    [
        lambda e: e[1:],  # no message_start
        lambda e: e[:-1],  # no message_stop
        lambda e: [x for x in e if x["type"] != "content_block_stop"],
        lambda e: [x for x in e if x["type"] != "content_block_start"],
        lambda e: [x for x in e if x["type"] != "message_delta"],
        lambda e: [*e, e[-1]],
        lambda e: [*e[:1], *e],  # two starts
        lambda e: [{**x, "index": 0} if "index" in x else x for x in e],
        lambda e: [*e[:3], {"type": "error", "error": {"message": "boom"}}],
        lambda e: [{**x, "delta": {"type": "text_delta"}} if "delta" in x and "index" in x else x for x in e],
    ],
)  # fmt: skip
def test_events_out_of_order(harm: Callable[[list[Event]], list[Event]]) -> None:
    with pytest.raises(ReplyError):
        other_apis.from_events(wire(harm(GOOD)))


def test_events_go_by_their_names() -> None:
    with pytest.raises(ReplyError, match="name"):
        other_apis.from_events(wire(GOOD).replace(b"event: message_stop", b"event: message"))
    with pytest.raises(ReplyError, match="name"):
        other_apis.from_events(wire(GOOD).replace(b"event: message_stop\n", b""))


@given(st.lists(st.integers(0, len(GOOD) - 1), max_size=12), st.binary(max_size=40))
def test_nothing_else_is_raised(order: list[int], junk: bytes) -> None:
    for body in (wire([GOOD[i] for i in order]), junk, b"data: " + junk):
        for read in (other_apis.from_events, other_apis.from_message):
            with suppress(ReplyError):
                read(body)


def test_the_request_has_the_formats_shape() -> None:
    (tool,) = other_apis.MESSAGES.body(WEATHER)["tools"]
    assert tool["input_schema"]["required"] == ["location"]
    assert set(tool) == {"name", "description", "input_schema"}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([(11, 11), (82, 82)], "pass"),
        ([(11, 11), (11, 82)], "fail engine"),  # without the tools
        ([(None, 11)], "fail engine"),
        ([(True, 1)], "fail engine"),
        ([(11, None)], "pass"),
    ],
)
def test_tokens_counted_before(counts: list[tuple[Any, int | None]], expected: str) -> None:
    assert verdict(judge_count_tokens(counts)) == expected


NAMES = ("text only", "an image", "an image only", "two images")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((10, 74, 70, 138), "pass"),
        ((10, 74, 70), "pass"),  # one image is all that may be sent
        ((10, 10, 8, 10), "fail configuration"),  # dropped
        ((10, 74, 70, 74), "fail configuration"),  # the second is dropped
        ((10, 74, 70, 100), "fail engine"),  # the second is made small
        ((RequestRefused(500, "boom"), 74, 70, 138), "fail engine"),
        ((RequestRefused(400, "no image"), 74, 70, 138), "fail engine"),
        ((10, RequestRefused(400, "no vision"), 70, 138), "fail configuration"),
        ((10, 74, 70, RequestRefused(500, "boom")), "fail engine"),
        ((10, 74, 70, RequestRefused(400, "one image at most")), "fail configuration"),
        ((10, None, 70, 138), "not-applicable"),
    ],
)
def test_images(found: tuple[int | RequestRefused | None, ...], expected: str) -> None:
    assert verdict(judge_images(dict(zip(NAMES, found, strict=False)))) == expected
