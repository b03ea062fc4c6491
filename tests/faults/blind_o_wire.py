"""What gateways, caches and replicas do: operations of the blind round o. Only Python's own library."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Broken, Conversation, Data, Operation

ALIKE = 20  # characters that a question shares with one that was asked
SENT = 24  # characters of a stream
EVENTS = 12
PAUSE = 0.4  # seconds between two requests
BEATS = b": keep-alive\n\n"


class Limited(Broken):
    """The gateway counts requests, and these are too many."""

    status = 429


def _texts(chat: Conversation, change: Callable[[str], str]) -> None:
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = change(message["content"])


def o_empty_turns_dropped(chat: Conversation, _data: Data) -> None:
    """Messages without text are left out, those that only call, too; then results without a call are."""
    kept = [m for m in chat.request["messages"] if m.get("content")]
    known = {call.get("id") for m in kept for call in m.get("tool_calls") or ()}
    chat.request["messages"] = [m for m in kept if m.get("role") != "tool" or m.get("tool_call_id") in known]


def o_first_words_twice(chat: Conversation, data: Data) -> None:
    """A stream is tried again after its first words, which have been sent already."""
    for part in () if chat.whole else chat.parts(data):
        text = part.get("content")
        if isinstance(text, str) and text.strip():
            seen = chat.kept.get("seen", "")
            if len(seen) < SENT:
                seen += text
                chat.kept["seen"] = seen
                if len(seen) >= SENT:
                    part["content"] = text + seen


def o_pieces_stripped(chat: Conversation, data: Data) -> None:
    """White space around each piece of a stream is cut off."""
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = part["content"].strip()


ANSWERS: dict[str, str] = {}  # of the whole process
LOCK = threading.Lock()


def _last_question(chat: Conversation) -> str:
    asked = [str(m.get("content")) for m in chat.request["messages"] if m.get("role") == "user"]
    return asked[-1] if asked else ""


def o_near_questions_same(chat: Conversation, data: Data) -> None:
    """A cache by likeness gives the answer of a question that begins alike."""
    if not chat.whole or any(m.get("role") == "tool" for m in chat.request["messages"]):
        return
    key = json.dumps([_last_question(chat)[:ALIKE], bool(chat.request.get("tools"))])
    with LOCK:
        data["choices"] = json.loads(ANSWERS.setdefault(key, json.dumps(data["choices"])))


TURN = {"next": 0}


def o_every_second_old(chat: Conversation, _data: Data) -> None:
    """Every second request goes to a replica of an earlier release, which knows no tools."""
    with LOCK:
        TURN["next"] += 1
        old = TURN["next"] % 2 == 0
    if old:
        chat.request.pop("tools", None)
        chat.request.pop("chat_template_kwargs", None)


def o_places_masked(chat: Conversation, _data: Data) -> None:
    """A guard for private data masks names in questions and puts none back."""
    _texts(chat, lambda text: re.sub(r"\b(in|is|to) [A-Z]\w+", r"\1 <LOCATION>", text))


def o_stream_stops(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The proxy's patience ends before a stream does: it is closed after some events."""
    seen = 0
    for line in lines:
        seen += line.startswith(b"data:")
        if seen > EVENTS:
            return
        yield line


def o_letters_escaped(chat: Conversation, data: Data) -> None:
    """Letters beyond ASCII and quotes are escaped once too often: the reader sees the escapes."""

    def escaped(text: str) -> str:
        return json.dumps(text)[1:-1].replace("\\n", "\n")

    for part in chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part.get(key), str):
                part[key] = escaped(part[key])


def o_stops_at_blank_line(chat: Conversation, _data: Data) -> None:
    """The gateway adds a stop string of its own, an empty line."""
    given = chat.request.get("stop") or []
    chat.request["stop"] = [*([given] if isinstance(given, str) else given), "\n\n"]


def o_names_sanitised(chat: Conversation, _data: Data) -> None:
    """Tools get names without underscores on their way in."""
    for tool in chat.request.get("tools") or ():
        function = tool.get("function") or {}
        function["name"] = str(function.get("name")).replace("_", "-")


def o_names_with_hyphens(chat: Conversation, data: Data) -> None:
    """Names of calls have no underscores on their way out, either: nobody puts them back."""
    for call in chat.calls(data):
        function = call.get("function") or {}
        if function.get("name"):
            function["name"] = function["name"].replace("_", "-")


LAST = {"at": 0.0}


def o_one_at_a_time(_chat: Conversation, _data: Data) -> None:
    """Requests that come close behind another are refused."""
    with LOCK:
        now = time.monotonic()
        early = now - LAST["at"] < PAUSE
        if not early:
            LAST["at"] = now
    if early:
        raise Limited("Rate limit exceeded, try again later")


def o_content_in_parts(chat: Conversation, _data: Data) -> None:
    """Plain text is sent on as a list of one part, which means the same."""
    for message in chat.request["messages"]:
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]


def o_extras_added(_chat: Conversation, data: Data) -> None:
    """Answers get the gateway's own id and further fields, which clients leave unread."""
    if isinstance(data.get("id"), str):
        data["id"] = f"gw-{data['id']}"
    data["service_tier"] = "default"
    data["provider"] = "local"


def o_keeps_alive(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Comments between events keep a stream's connection open."""
    yield BEATS
    for line in lines:
        yield line
        if not line.strip():
            yield BEATS


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        o_empty_turns_dropped,
        o_every_second_old,
        o_places_masked,
        o_stops_at_blank_line,
        o_names_sanitised,
        o_one_at_a_time,
        o_content_in_parts,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        o_first_words_twice,
        o_pieces_stripped,
        o_near_questions_same,
        o_letters_escaped,
        o_names_with_hyphens,
        o_extras_added,
    )
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (o_stream_stops, o_keeps_alive)
}
