"""What gateways of round m do to requests and answers: operations of ``wire.py``. Python's library alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tests.faults.conversation import Conversation, Data, Operation, Unreachable

REPLICAS = 4
OFTEN = 5  # events
PLACE = re.compile(r"\b(in|of|from|to) ([A-Z]\w+)")
WRAPPED = "Answer by these documents alone:\n(none)\n\nQuestion: {}\n\nDo not answer otherwise."
FOREIGN = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}


def question_wrapped(chat: Conversation, _data: Data) -> None:
    """A search that finds nothing wraps the last question all the same."""
    asked = [m for m in chat.request["messages"] if m.get("role") == "user"]
    if asked and isinstance(asked[-1].get("content"), str):
        asked[-1]["content"] = WRAPPED.format(asked[-1]["content"])


def places_masked(chat: Conversation, _data: Data) -> None:
    """A filter for personal data puts a mark in the place of names of places."""
    for message in chat.request["messages"]:
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            message["content"] = PLACE.sub(r"\1 <LOCATION>", message["content"])


def stream_unheard(chat: Conversation, _data: Data) -> None:
    """The engine is never asked to stream; clients of streams get one whole object."""
    chat.request["stream"] = False


def replica_gone(chat: Conversation, _data: Data) -> None:
    """One replica of several is gone, and still gets its share of the requests."""
    if chat.state.asked % REPLICAS == 0:
        raise Unreachable("upstream connect error: connection refused")


def limit_by_newer_name(chat: Conversation, _data: Data) -> None:
    """The limit of tokens goes on under its newer name; the engine knows both."""
    limit = chat.request.pop("max_tokens", None)
    if limit is not None and chat.request.get("max_completion_tokens") is None:
        chat.request["max_completion_tokens"] = limit


def answer_as_list_of_parts(chat: Conversation, data: Data) -> None:
    """Text of answers comes as a list of parts."""
    for part in chat.parts(data):
        if isinstance(part.get("content"), str) and part["content"]:
            part["content"] = [{"type": "text", "text": part["content"]}]


def call_by_older_name(chat: Conversation, data: Data) -> None:
    """A call comes as ``function_call``, as it did in the first version of the interface."""
    for part in chat.parts(data):
        if calls := part.pop("tool_calls", None):
            part["function_call"] = calls[0]["function"]
    for choice in data.get("choices") or ():
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "function_call"


def finish_in_other_words(_chat: Conversation, data: Data) -> None:
    """Answers end with the words of another maker's interface."""
    for choice in data.get("choices") or ():
        choice["finish_reason"] = FOREIGN.get(choice.get("finish_reason"), choice.get("finish_reason"))


def pieces_stripped(chat: Conversation, data: Data) -> None:
    """White space around each piece of a stream is taken away, that between words, too."""
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = part["content"].strip()


def first_event_lost(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The first event is read to see that the engine answers, and is not passed on."""
    seen = False
    for line in lines:
        if line.startswith(b"data:") and not seen:
            seen = True
            continue
        yield line


def events_repeated(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Each fifth event is sent again, as after a lost acknowledgement."""
    count = 0
    for line in lines:
        yield line
        if line.startswith(b"data: {"):
            count += 1
            if count % OFTEN == 0:
                yield b"\n" + line


def pings_as_events(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A ping comes as an event like the others, without choices."""
    for number, line in enumerate(lines):
        if number == 0:
            yield b'data: {"type": "ping"}\n\n'
        yield line


def comments_between(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Comments between events keep the connection open; the standard has them."""
    for line in lines:
        if line.startswith(b"data:"):
            yield b": keep-alive\n\n"
        yield line


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        question_wrapped,
        places_masked,
        stream_unheard,
        replica_gone,
        limit_by_newer_name,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (answer_as_list_of_parts, call_by_older_name, finish_in_other_words, pieces_stripped)
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (first_event_lost, events_repeated, pings_as_events, comments_between)
}
