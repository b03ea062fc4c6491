"""What a fleet's gateways do, by an author who had not read the probes: more operations of ``wire.py``."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from tests.faults.conversation import Conversation, Data, Forbidden, Operation, TooLarge, Unreachable

PIECES = 24  # of a stream, until the gateway's patience ends
REPLICAS = 3
STALE = 7  # the request that meets a connection which the other side has closed
LARGEST = 6000  # bytes of a body
ATTACK = re.compile(r"\b(select\b.+\bfrom|drop\s+table|union\s+select)\b|\.\./|<script", re.IGNORECASE)


def silent_turns_dropped(chat: Conversation, _data: Data) -> None:
    """Turns without text are no turns: an assistant that only called something was never there."""
    chat.request["messages"] = [m for m in chat.request["messages"] if m.get("content")]


def old_replica(chat: Conversation, _data: Data) -> None:
    """One replica of three was not updated: it knows neither tools nor template variables."""
    if chat.state.asked % REPLICAS == 0:
        for key in ("tools", "tool_choice", "chat_template_kwargs"):
            chat.request.pop(key, None)


def stale_connection(chat: Conversation, _data: Data) -> None:
    """Now and then a request goes over a connection that the engine has closed."""
    if chat.state.asked % STALE == 0:
        raise Unreachable("upstream prematurely closed connection")


def empty_left_out(chat: Conversation, _data: Data) -> None:
    """The gateway's own types leave out what is false, nought or empty."""

    def full(value: Any) -> Any:
        if isinstance(value, dict):
            told = {key: full(inner) for key, inner in value.items()}
            return {key: inner for key, inner in told.items() if inner or inner == {}}
        return [full(inner) for inner in value] if isinstance(value, list) else value

    told = full(chat.request)
    chat.request.clear()
    chat.request.update(told)


def equal_turns_once(chat: Conversation, _data: Data) -> None:
    """A filter against repeated deliveries drops a message whose words were there before."""
    seen: set[str] = set()
    kept = []
    for message in chat.request["messages"]:
        words = json.dumps([message.get("role"), message.get("content"), message.get("tool_calls")])
        if words not in seen:
            kept.append(message)
        seen.add(words)
    chat.request["messages"] = kept


def attacks_refused(chat: Conversation, _data: Data) -> None:
    """A firewall refuses what looks like SQL, a path upwards or a script."""
    if ATTACK.search(json.dumps(chat.request["messages"])):
        raise Forbidden("request blocked by policy 942100")


def bodies_refused(chat: Conversation, _data: Data) -> None:
    """A body of more than six thousand bytes is refused."""
    if len(json.dumps(chat.request)) > LARGEST:
        raise TooLarge("client intended to send too large body")


def stream_cut(chat: Conversation, _data: Data) -> None:
    """A stream that lasts longer than the gateway's patience is cut."""
    if chat.whole:
        return
    chat.kept["pieces"] = chat.kept.get("pieces", 0) + 1
    if chat.kept["pieces"] > PIECES:
        raise ConnectionResetError


def pieces_overtake(chat: Conversation, data: Data) -> None:
    """The third and the fourth piece of a stream arrive in the other order."""
    if chat.whole:
        return
    for choice in data.get("choices") or ():
        delta = choice.get("delta") or {}
        text = delta.get("content")
        if choice.get("finish_reason"):
            delta["content"] = chat.kept.pop("late", "") + (text or "")
        elif text:
            chat.kept["count"] = chat.kept.get("count", 0) + 1
            if chat.kept["count"] == 3:
                chat.kept["late"], delta["content"] = text, ""
            elif "late" in chat.kept:
                late = copy.deepcopy(data)
                late["choices"][0]["delta"]["content"] = chat.kept.pop("late")
                chat.kept["more"] = [late]


def fields_added(_chat: Conversation, data: Data) -> None:
    """The gateway writes a field of its own into each answer, which harms nobody."""
    data["x_gateway"] = {"region": "eu-2", "retries": 0}


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        silent_turns_dropped,
        old_replica,
        stale_connection,
        empty_left_out,
        equal_turns_once,
        attacks_refused,
        bodies_refused,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        stream_cut,
        pieces_overtake,
        fields_added,
    )
}
