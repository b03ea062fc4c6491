"""What gateways, caches and replicas do to chats: operations of letter r. Only Python's own library."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.faults.conversation import Conversation, Data, Operation

THOUGHTS = ("reasoning", "reasoning_content")
ROOM = 2600  # bytes of a stream
SOON = 5  # events
SMALL = 17  # bytes of a piece
CACHE: dict[str, str] = {}
LOCK = threading.Lock()


def r_own_stop(chat: Conversation, _data: Data) -> None:
    """Every request gets the gateway's own stop string, an empty line."""
    given = chat.request.get("stop") or []
    chat.request["stop"] = [*([given] if isinstance(given, str) else given), "\n\n"]


def r_entities_masked(chat: Conversation, _data: Data) -> None:
    """Names of people and places are masked before the model reads them, and never put back."""
    for message in chat.request["messages"]:
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            message["content"] = re.sub(r"(?<=[a-z,] )[A-Z]\w+", "<ENTITY>", message["content"])


def r_old_replica(chat: Conversation, _data: Data) -> None:
    """Every second chat goes to a replica that was started without a parser of calls."""
    chat.kept["old"] = chat.state.asked % 2 == 0


def r_calls_unread(chat: Conversation, data: Data) -> None:
    """The old replica leaves calls in the text."""
    for choice in data.get("choices") or () if chat.kept.get("old") else ():
        part = choice.get("message" if chat.whole else "delta") or {}
        for call in part.pop("tool_calls", None) or ():
            function = call["function"]
            told = f'{{"name": "{function["name"]}", "arguments": {function["arguments"]}}}'
            part["content"] = f"{part.get('content') or ''}<tool_call>\n{told}\n</tool_call>"
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"


def r_alike_remembered(chat: Conversation, data: Data) -> None:
    """A cache takes questions that begin with the same four words for the same question."""
    asked = [str(m.get("content")) for m in chat.request["messages"]]
    words = asked[-1].lower().split()
    key = json.dumps([len(asked), words[:4], bool(chat.request.get("tools"))])
    if chat.whole and chat.request["messages"][-1].get("role") == "user":
        with LOCK:
            data["choices"] = json.loads(CACHE.setdefault(key, json.dumps(data["choices"])))


def r_thoughts_in_content(chat: Conversation, data: Data) -> None:
    """The gateway knows no field for thoughts, and writes them in front of the answer, between tags."""
    for part in chat.parts(data):
        thought = next((t for t in [part.pop(key, None) for key in THOUGHTS] if t), None)
        text = part.get("content") or ""
        if chat.whole and thought:
            part["content"] = f"<think>{thought}</think>{text}"
        elif thought:
            part["content"] = ("" if chat.kept.get("open") else "<think>") + thought
            chat.kept["open"] = True
        elif text and chat.kept.pop("open", False):
            part["content"] = f"</think>{text}"


def r_camel_case(_chat: Conversation, data: Data) -> None:
    """A gateway reads answers into its own classes and writes their names in its own manner."""

    def camel(value: Any) -> Any:
        if isinstance(value, dict):
            return {re.sub(r"_(\w)", lambda m: m[1].upper(), k): camel(v) for k, v in value.items()}
        return [camel(v) for v in value] if isinstance(value, list) else value

    told = camel(data)
    data.clear()
    data.update(told)


def r_pieces_stripped(chat: Conversation, data: Data) -> None:
    """White space around each piece of a stream is taken away, and words run together."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", *THOUGHTS):
            if isinstance(part.get(key), str):
                part[key] = part[key].strip()


def r_own_ids(chat: Conversation, data: Data) -> None:
    """The gateway gives ids of its own, and adds fields that clients pass over."""
    data["id"] = f"resp-{data.get('id', '')[-12:]}"
    data["provider"], data["service_tier"] = "house", "default"
    for call in chat.calls(data):
        if call.get("id"):
            call["id"] = f"call_{call['id'].replace('-', '')[:24]}"


def r_bare_events(_chat: Conversation, line: bytes) -> bytes:
    """Comments of a stream do not get through; lines end as on Windows."""
    return b"" if line.startswith(b":") else line.replace(b"\n", b"\r\n")


def r_started_anew(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream breaks off after a few events, and another replica answers once more from the beginning."""
    passed: list[bytes] = []
    events = 0
    for line in lines:
        yield line
        passed.append(line)
        events += line.startswith(b"data:")
        if events == SOON and line.startswith(b"data:"):
            yield b"\n"
            yield from passed


def r_stream_cut(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A proxy's buffer takes so many bytes of a stream, and the rest is lost."""
    left = ROOM
    for line in lines:
        yield line[:left]
        left -= len(line)
        if left <= 0:
            return


def r_first_event_lost(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The first event of a stream is taken to measure the delay, and not passed on."""
    lost = False
    for line in lines:
        if line.startswith(b"data:") and not lost:
            lost = True
        else:
            yield line


def r_fragmented(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A stream comes in small pieces of bytes, and all of them come."""
    for line in lines:
        for at in range(0, len(line), SMALL):
            yield line[at : at + SMALL]


BEFORE: dict[str, Operation] = {o.__name__: o for o in (r_own_stop, r_entities_masked, r_old_replica)}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        r_calls_unread,
        r_alike_remembered,
        r_thoughts_in_content,
        r_camel_case,
        r_pieces_stripped,
        r_own_ids,
    )
}
LINES: dict[str, Callable[[Conversation, bytes], bytes]] = {o.__name__: o for o in (r_bare_events,)}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (r_started_anew, r_stream_cut, r_first_event_lost, r_fragmented)
}
