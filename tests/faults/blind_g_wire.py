"""What servers and gateways of a seventh round do: operations of ``wire.py``. Only Python's own library."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Conversation, Data, Operation

EVENTS = 24  # of a stream, until the clock runs out
AGAIN = 3  # events of a stream that come again
THOUGHTS = ("reasoning", "reasoning_content")


def limit_by_its_new_name(chat: Conversation, _data: Data) -> None:
    """``max_completion_tokens`` is not known, and not passed on."""
    chat.request.pop("max_completion_tokens", None)


def parts_as_text(chat: Conversation, _data: Data) -> None:
    """A list of parts is written as the text of an object."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), list):
            message["content"] = str(message["content"])


def one_stop_string(chat: Conversation, _data: Data) -> None:
    """Of several stop strings the first is passed on."""
    if isinstance(chat.request.get("stop"), list):
        chat.request["stop"] = chat.request["stop"][:1]


def index_from_one(chat: Conversation, data: Data) -> None:
    """Streamed calls are counted from one: something else has the first place."""
    for call in () if chat.whole else chat.calls(data):
        call["index"] = call.get("index", 0) + 1


def names_nulled(chat: Conversation, data: Data) -> None:
    """A streamed call comes in two pieces, and the second says that there is no name and no id."""
    if chat.whole or not any(chat.calls(data)):
        return
    second = copy.deepcopy(data)
    for call, rest in zip(chat.calls(data), chat.calls(second), strict=True):
        text = (call.get("function") or {}).get("arguments") or ""
        half = len(text) // 2
        call["function"]["arguments"] = text[:half]
        rest["id"] = rest["type"] = None
        rest["function"] = {"name": None, "arguments": text[half:]}
    for choice in data["choices"]:
        choice["finish_reason"] = None
    data.pop("usage", None)
    chat.kept["more"] = [second]


def thoughts_within_the_text(chat: Conversation, data: Data) -> None:
    """Thoughts stand between tags at the beginning of the text."""
    for part in chat.parts(data):
        thought = next((t for t in [part.pop(key, None) for key in THOUGHTS] if t), None)
        begun = chat.kept.get("thinks", False)
        text = part.get("content") or ""
        if thought:
            text = ("" if begun else "<think>") + thought + (f"</think>{text}" if chat.whole else "")
            chat.kept["thinks"] = True
        elif begun and text and not chat.whole:
            chat.kept["thinks"], text = False, f"</think>{text}"
        if text:
            part["content"] = text


def no_arguments_at_all(chat: Conversation, data: Data) -> None:
    """A call without arguments has an empty text where an empty object belongs."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if (function.get("arguments") or "").strip() == "{}":
            function["arguments"] = ""


def arguments_indented(chat: Conversation, data: Data) -> None:
    """Arguments are written anew with spaces and lines: the same JSON."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        try:
            function["arguments"] = json.dumps(json.loads(function.get("arguments") or ""), indent=2)
        except ValueError:
            continue


def costs_told(_chat: Conversation, data: Data) -> None:
    """Answers tell what they cost, in members that no client of the interface reads."""
    data["x_gateway"] = {"cost": 0.00012, "region": "eu-1"}
    data["service_tier"] = "default"


def cut_by_a_clock(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream that takes long is closed, without a word."""
    seen = 0
    for line in lines:
        seen += line.startswith(b"data:")
        if seen > EVENTS:
            return
        yield line


def begun_again(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream is asked for once more when it stops short, and begins from the beginning."""
    first: list[bytes] = []
    told = False
    for line in lines:
        yield line
        if told:
            continue
        if line.startswith(b"data:"):
            first.append(line.rstrip(b"\n") + b"\n\n")
        if len(first) == AGAIN:
            told = True
            yield b"\n" + b"".join(first)


def kept_alive(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Comments come between events, so that nobody closes the connection."""
    for line in lines:
        if line.startswith(b"data:"):
            yield b": keep-alive\n\n"
        yield line


BEFORE: dict[str, Operation] = {
    o.__name__: o for o in (limit_by_its_new_name, parts_as_text, one_stop_string)
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        index_from_one,
        names_nulled,
        thoughts_within_the_text,
        no_arguments_at_all,
        arguments_indented,
        costs_told,
    )
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (cut_by_a_clock, begun_again, kept_alive)
}
