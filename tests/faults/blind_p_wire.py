"""What stands between a server and its clients may do, round p: operations of ``wire.py``. Only Python's own
library."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Conversation, Data, Operation

BUFFER = 4096  # bytes
BEFORE_FAILURE = 6  # events
TEXTS = ("content", "reasoning", "reasoning_content")
CACHED: dict[str, str] = {}  # answers, of the whole process
PENDING: list[tuple[Conversation, str]] = []  # text of streams that another one may take


def p_deltas_trimmed(chat: Conversation, data: Data) -> None:
    """White space at the ends of each piece of a stream is taken away."""
    for part in () if chat.whole else chat.parts(data):
        for key in TEXTS:
            if isinstance(part.get(key), str):
                part[key] = part[key].strip()


def p_calls_without_text_dropped(chat: Conversation, _data: Data) -> None:
    """Turns without content do not get through, and those that call have none."""
    chat.request["messages"] = [m for m in chat.request["messages"] if m.get("content")]


def p_nearly_the_same(chat: Conversation, data: Data) -> None:
    """A question that begins as an earlier one gets the answer of then."""
    if not chat.whole:
        return
    asked = [str(m.get("content")) for m in chat.request["messages"]]
    key = json.dumps([len(asked), asked[-1].lower().split()[:5], bool(chat.request.get("tools"))])
    data["choices"] = json.loads(CACHED.setdefault(key, json.dumps(data["choices"])))


def p_escaped_for_pages(chat: Conversation, data: Data) -> None:
    """Texts of answers are escaped for HTML, those of calls too."""
    for part in chat.parts(data):
        for key in TEXTS:
            if isinstance(part.get(key), str):
                part[key] = html.escape(part[key])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = html.escape(function["arguments"])


def p_names_masked(chat: Conversation, _data: Data) -> None:
    """Names of people and places in questions are masked, and not put back into answers."""
    for message in chat.request["messages"]:
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            text = message["content"]
            message["content"] = text[:1] + re.sub(r"(?<=\w )[A-Z]\w{2,}", "<LOCATION>", text[1:])


def p_old_replica(chat: Conversation, data: Data) -> None:
    """Of two servers one reads no calls: every second request gets them as text."""
    if "replica" not in chat.kept:
        chat.kept["replica"] = chat.state.asked % 2
    if not chat.kept["replica"]:
        return
    for choice in data.get("choices") or ():
        part = choice.get("message" if chat.whole else "delta") or {}
        for call in part.pop("tool_calls", None) or ():
            function = call.get("function") or {}
            told = f'{{"name": "{function.get("name")}", "arguments": {function.get("arguments")}}}'
            part["content"] = f"{part.get('content') or ''}<tool_call>\n{told}\n</tool_call>"
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"


def p_stops_added(chat: Conversation, _data: Data) -> None:
    """Every request has the stop words of a model that completes texts."""
    chat.request["stop"] = ["\n\n", "User:"]


def p_streams_mixed(chat: Conversation, data: Data) -> None:
    """Streams at the same time share a buffer: each gets what another one put there."""
    if chat.whole or sum(bool(request.get("stream")) for request in chat.state.flying) < 2:
        return
    for part in chat.parts(data):
        if part.get("content"):
            taken = next((one for one in PENDING if one[0] is not chat), None)
            PENDING.append((chat, part["content"]))
            if taken:
                PENDING.remove(taken)
                part["content"] = taken[1]


def p_cut_at_buffer(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Of a stream no more gets through than the buffer holds."""
    room = BUFFER
    for line in lines:
        room -= len(line)
        if room < 0:
            return
        yield line


def p_begun_again(lines: Iterable[bytes]) -> Iterator[bytes]:
    """After some events the gateway asks again, and sends the new stream behind what it has sent."""
    kept = list(lines)
    events = [at for at, line in enumerate(kept) if line.startswith(b"data: {")]
    if len(events) > BEFORE_FAILURE:
        yield from kept[: events[BEFORE_FAILURE]]
    yield from kept


def p_said_at_once(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Where a stream was wanted one JSON body comes, from a cache that knows whole answers only."""
    told: Data = {}
    text = ""
    calls: list[Data] = []
    for line in lines:
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or not data.startswith(b"{"):
            continue
        told = {**told, **json.loads(data)}
        for choice in told.get("choices") or ():
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            calls += delta.get("tool_calls") or []
    message = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}]
    yield json.dumps(told | {"object": "chat.completion", "choices": choices}, ensure_ascii=False).encode()


def p_relabelled(_chat: Conversation, data: Data) -> None:
    """A gateway puts its own id, provider and cost on everything."""
    data["id"] = f"gen-{data.get('id', '')}"
    data["provider"] = "home"
    if isinstance(data.get("usage"), dict):
        data["usage"]["cost"] = 0.0


def p_letters_apart(chat: Conversation, data: Data) -> None:
    """A long piece of text of a stream comes as two."""
    choices = data.get("choices") or []
    if chat.whole or len(choices) != 1 or choices[0].get("finish_reason"):
        return
    delta = choices[0].get("delta") or {}
    text = delta.get("content")
    if not isinstance(text, str) or len(text) < 3 or delta.get("tool_calls"):
        return
    delta["content"] = text[:2]
    rest = {"index": choices[0].get("index", 0), "finish_reason": None, "delta": {"content": text[2:]}}
    chat.kept["more"] = [data | {"choices": [rest]}]


def p_comments_between(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Comments and names of events stand between the events, as the format allows."""
    for line in lines:
        if line.startswith(b"data: {"):
            yield b": ping\n\n"
        yield line


BEFORE: dict[str, Operation] = {
    o.__name__: o for o in (p_calls_without_text_dropped, p_names_masked, p_stops_added)
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        p_deltas_trimmed,
        p_nearly_the_same,
        p_escaped_for_pages,
        p_old_replica,
        p_streams_mixed,
        p_relabelled,
        p_letters_apart,
    )
}
LINES: dict[str, Callable[[Conversation, bytes], bytes]] = {}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (p_cut_at_buffer, p_begun_again, p_said_at_once, p_comments_between)
}
