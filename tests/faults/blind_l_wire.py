"""Change requests and answers as gateways of round l do, for ``wire.py``. Only Python's own library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.faults.conversation import Conversation, Data, Operation

ALIKE = 0.7
LAST = 12  # events
REMEMBERED: list[tuple[set[str], str]] = []  # of the whole process


def l_falsy_dropped(chat: Conversation, _data: Data) -> None:
    """What is nought, false or empty in a request is taken for not given."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: kept(v) for k, v in value.items() if v or k == "content"}
        return value

    told = {k: kept(v) for k, v in chat.request.items() if v or k == "messages"}
    for key in [k for k in chat.request if k not in told]:
        chat.request.pop(key)
    chat.request.update(told)


def l_first_part_only(chat: Conversation, _data: Data) -> None:
    """Of contents in several parts the first is passed on."""
    for message in chat.request["messages"]:
        content = message.get("content")
        if isinstance(content, list) and content:
            message["content"] = content[0].get("text", "")


def l_system_as_developer(chat: Conversation, _data: Data) -> None:
    """The system's role has the name that newer models of one vendor use."""
    for message in chat.request["messages"]:
        if message.get("role") == "system":
            message["role"] = "developer"


def l_asked_alike(chat: Conversation, data: Data) -> None:
    """A question that is much like an earlier one gets the answer of that one."""
    if not chat.whole or not data.get("choices"):
        return
    last = chat.request["messages"][-1]
    words = set(re.findall(r"\w+", str(last.get("content") or "").lower()))
    for known, answer in REMEMBERED:
        if words and len(words & known) / len(words | known) >= ALIKE:
            data["choices"] = json.loads(answer)
            return
    REMEMBERED.append((words, json.dumps(data["choices"])))


def l_names_in_camel_case(chat: Conversation, data: Data) -> None:
    """Keys and names go through a mapper of another language's style."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if function.get("name"):
            function["name"] = re.sub(r"_(\w)", lambda m: m[1].upper(), function["name"])


def l_places_masked(chat: Conversation, data: Data) -> None:
    """Names of places in arguments are masked, since they might be personal."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = re.sub(r'(?<=")[A-Z]\w+(?=")', "<LOCATION>", function["arguments"])


def l_pieces_trimmed(chat: Conversation, data: Data) -> None:
    """White space around each piece of a stream is taken off."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part.get(key), str):
                part[key] = part[key].strip()


def l_calls_glued(chat: Conversation, data: Data) -> None:
    """Calls side by side become one, whose arguments are those of all."""
    if not chat.whole:
        for call in chat.calls(data):
            first = not chat.kept.get("l_called")
            chat.kept["l_called"] = True
            call["index"] = 0
            if not first:
                call.pop("id", None)
                (call.get("function") or {}).pop("name", None)
        return
    for part in chat.parts(data):
        calls = part.get("tool_calls") or []
        if len(calls) > 1:
            calls[0]["function"]["arguments"] = "".join(c["function"]["arguments"] for c in calls)
            part["tool_calls"] = calls[:1]


def l_told_by_gateway(chat: Conversation, data: Data) -> None:
    """Further fields say where the answer came from and what it cost."""
    data["provider"] = "in-house"
    if isinstance(data.get("usage"), dict):
        data["usage"]["cost"] = 0.0
        data["usage"].setdefault("completion_tokens_details", {})["audio_tokens"] = 0


def l_pieces_overtake(events: Iterable[bytes]) -> Iterator[bytes]:
    """Of two pieces of a stream the second sometimes arrives first."""
    held: bytes | None = None
    count = 0
    for event in events:
        count += event.startswith(b"data: {")
        if held is not None and event.startswith(b"data: {"):
            yield event
            yield b"\n"
            yield held
            held = None
        elif event.startswith(b"data: {") and count % 4 == 2:
            held = event
        else:
            if b"[DONE]" in event and held is not None:
                yield held + b"\n"
                held = None
            yield event
    if held is not None:
        yield held


def l_ends_at_timeout(events: Iterable[bytes]) -> Iterator[bytes]:
    """A stream that is not done in time ends without a word."""
    count = 0
    for event in events:
        count += event.startswith(b"data: {")
        if count > LAST:
            return
        yield event


def l_comments_between(events: Iterable[bytes]) -> Iterator[bytes]:
    """Comments stand between the events of a stream, which keep connections open."""
    yield b": PROCESSING\n\n"
    for event in events:
        yield event
        if not event.strip():
            yield b": PROCESSING\n\n"


BEFORE: dict[str, Operation] = {
    o.__name__: o for o in (l_falsy_dropped, l_first_part_only, l_system_as_developer)
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        l_asked_alike,
        l_names_in_camel_case,
        l_places_masked,
        l_pieces_trimmed,
        l_calls_glued,
        l_told_by_gateway,
    )
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (l_pieces_overtake, l_ends_at_timeout, l_comments_between)
}
