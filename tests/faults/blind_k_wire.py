"""What gateways did to requests, answers and streams in the round k. Only Python's own library."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Conversation, Data, Operation, Unreachable

TURN = 5  # of replicas
AGAIN = 4  # chunks
BUFFER = 8192  # bytes
ALIKE = 20  # characters
PING = 4  # lines
PRIVATE = re.compile(r"\d+|(?<=[Nn]ame is )\w+|(?<=I am )[^\W\d_a-z]\w+")


def k_texts_encoded_twice(chat: Conversation, _data: Data) -> None:
    """Encode the text of turns as JSON twice, and decode it once."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = json.dumps(message["content"])[1:-1]


def k_newer_limit_dropped(chat: Conversation, _data: Data) -> None:
    """Drop the limit of an answer by its newer name, which the gateway does not know."""
    chat.request.pop("max_completion_tokens", None)


def k_private_masked(chat: Conversation, _data: Data) -> None:
    """Mask names that people give and all numbers, so that nothing private leaves the house."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str) and message.get("role") in ("user", "tool"):
            message["content"] = PRIVATE.sub("***", message["content"])


def k_replica_down(chat: Conversation, _data: Data) -> None:
    """Send each fifth request to a replica that is down."""
    if chat.state.asked % TURN == 0:
        raise Unreachable("no healthy upstream")


ANSWERS: dict[str, str] = {}  # by what questions begin with


def k_answers_alike(chat: Conversation, data: Data) -> None:
    """Give a question the answer to an earlier one that begins alike."""
    if not chat.whole:
        return
    asked = [m.get("content") for m in chat.request["messages"] if m.get("role") == "user"]
    last = str(asked[-1])[:ALIKE] if asked else ""
    key = json.dumps([last, len(chat.request["messages"]), bool(chat.request.get("tools"))])
    data["choices"] = json.loads(ANSWERS.setdefault(key, json.dumps(data["choices"])))


def k_names_camel(chat: Conversation, data: Data) -> None:
    """Write names of tools as the gateway's own language writes names."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if function.get("name"):
            function["name"] = re.sub(r"_(\w)", lambda m: m[1].upper(), function["name"])


def k_content_in_parts(chat: Conversation, data: Data) -> None:
    """Give the content of whole answers as a list of parts."""
    for part in chat.parts(data) if chat.whole else ():
        if isinstance(part.get("content"), str):
            part["content"] = [{"type": "text", "text": part["content"]}]


def k_chunks_again(chat: Conversation, data: Data) -> None:
    """Send each fourth event of a stream twice."""
    if chat.whole:
        return
    chat.kept["sent"] = chat.kept.get("sent", 0) + 1
    if chat.kept["sent"] % AGAIN == 0:
        chat.kept["more"] = [copy.deepcopy(data)]


def k_fields_added(chat: Conversation, data: Data) -> None:
    """Add fields that others' answers have, too: nobody minds them."""
    data["provider"], data["service_tier"] = "rack-7", "default"
    for part in chat.parts(data) if chat.whole else ():
        part.setdefault("refusal", None)
        part.setdefault("annotations", [])


def k_comments_as_data(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Pass a stream's comments on as events."""
    for line in lines:
        yield b"data" + line if line.startswith(b":") else line


def k_blank_lines_lost(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out the empty lines that end events."""
    for line in lines:
        if line.strip():
            yield line.rstrip(b"\n") + b"\n"


def k_stream_cut(lines: Iterable[bytes]) -> Iterator[bytes]:
    """End a stream where a buffer is full."""
    sent = 0
    for line in lines:
        sent += len(line)
        if sent > BUFFER:
            return
        yield line


def k_pings(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Keep a stream awake with comments between events, as its format allows."""
    for number, line in enumerate(lines):
        yield line
        if not line.strip() and number % PING == 1:
            yield b": ping\n\n"


BEFORE: dict[str, Operation] = {
    o.__name__: o for o in (k_texts_encoded_twice, k_newer_limit_dropped, k_private_masked, k_replica_down)
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (k_answers_alike, k_names_camel, k_content_in_parts, k_chunks_again, k_fields_added)
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (k_comments_as_data, k_blank_lines_lost, k_stream_cut, k_pings)
}
