"""What gateways do to requests, answers and streams in the round j. Only Python's own library."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.faults.conversation import Broken, Conversation, Data, Operation, Unreachable

REPLICAS = 4
PREFIX = b"data: {"


class NotServed(Broken):
    """This replica does not have the model."""

    status = 404


def j_replica_without_model(chat: Conversation, _data: Data) -> None:
    """One of the replicas behind the balancer does not have the model."""
    if chat.state.asked % REPLICAS == 0:
        raise NotServed(f"The model `{chat.request.get('model')}` does not exist")


def j_empty_turns_dropped(chat: Conversation, _data: Data) -> None:
    """Turns without text are left out, and calls with them."""
    chat.request["messages"] = [m for m in chat.request["messages"] if str(m.get("content") or "").strip()]


def j_places_masked(chat: Conversation, _data: Data) -> None:
    """What looks like a place or a person is masked in questions."""
    for message in chat.request["messages"]:
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            masked = re.sub(r"\b(in|to|from|and|is) [A-Z]\w+", r"\1 <LOCATION>", message["content"])
            message["content"] = masked


FIRST: dict[str, Any] = {}  # the system's turn of the first chat that had one


def j_first_system_kept(chat: Conversation, _data: Data) -> None:
    """The system's turn of the first chat is kept for all later ones that have one."""
    for message in chat.request["messages"]:
        if message.get("role") == "system":
            message["content"] = FIRST.setdefault("content", message.get("content"))


def j_stream_ignored(chat: Conversation, _data: Data) -> None:
    """A client that wants a stream gets a whole answer."""
    chat.request["stream"] = False
    chat.request.pop("stream_options", None)


def j_keys_in_camel_case(_chat: Conversation, data: Data) -> None:
    """Keys of answers are written as JavaScript writes names."""

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(v) for v in value]
        if isinstance(value, dict):
            return {re.sub(r"_(\w)", lambda m: m[1].upper(), k): named(v) for k, v in value.items()}
        return value

    told = named(data)
    data.clear()
    data.update(told)


def j_answers_escaped(chat: Conversation, data: Data) -> None:
    """Answers are written for a web page: quotes and brackets are entities."""
    for part in chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = html.escape(part["content"])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = html.escape(function["arguments"])


def j_empty_is_failure(chat: Conversation, data: Data) -> None:
    """An answer without text is taken for a failure of the engine."""
    if chat.whole and not any((part.get("content") or "").strip() for part in chat.parts(data)):
        raise Unreachable("upstream returned an empty response")


def j_deltas_cumulate(chat: Conversation, data: Data) -> None:
    """Each event of a stream has all the text so far."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", "reasoning"):
            if part.get(key):
                chat.kept[key] = part[key] = chat.kept.get(key, "") + part[key]


def j_first_event_skipped(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The first event of a stream is taken for one that has the role alone, and left out."""
    skipped = False
    for line in lines:
        if not skipped and line.startswith(PREFIX):
            skipped = True
            continue
        yield line


def j_contents_in_parts(chat: Conversation, _data: Data) -> None:
    """Texts are sent as lists of one part, which means the same."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]


def j_limit_renamed(chat: Conversation, _data: Data) -> None:
    """The limit goes by its newer name, and the request is marked for the bill."""
    if "max_tokens" in chat.request and "max_completion_tokens" not in chat.request:
        chat.request["max_completion_tokens"] = chat.request.pop("max_tokens")
    chat.request["user"] = "team-7"
    chat.request["metadata"] = {"trace": "4bf92f35"}


def j_tiers_told(_chat: Conversation, data: Data) -> None:
    """Answers tell the tier, and that nothing was refused."""
    data["service_tier"] = "default"
    for choice in data.get("choices") or ():
        if isinstance(choice.get("message"), dict):
            choice["message"]["refusal"] = None


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        j_replica_without_model,
        j_empty_turns_dropped,
        j_places_masked,
        j_first_system_kept,
        j_stream_ignored,
        j_contents_in_parts,
        j_limit_renamed,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (j_keys_in_camel_case, j_answers_escaped, j_empty_is_failure, j_deltas_cumulate, j_tiers_told)
}
STREAMS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    o.__name__: o for o in (j_first_event_skipped,)
}
