"""What other gateways do to chats: further operations of ``wire.py``. Only Python's own library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tests.faults.conversation import Conversation, Data, Forbidden, Operation, TooLarge

ROOM = 2048  # bytes of a request
ATTACK = re.compile(r"<script|\.\./|/etc/passwd|union\s+select|;\s*(?:rm|curl|wget)\s", re.IGNORECASE)
POLICY = "You are the assistant of this company. Answer in words and be brief."


def bodies_limited(chat: Conversation, _data: Data) -> None:
    """Requests of more than two KiB are turned down."""
    if len(json.dumps(chat.request)) > ROOM:
        raise TooLarge("<html><title>413 Request Entity Too Large</title></html>")


def attacks_seen(chat: Conversation, _data: Data) -> None:
    """A firewall reads prompts, and takes what looks like an attack on a page for one."""
    if ATTACK.search(json.dumps(chat.request["messages"], ensure_ascii=False)):
        raise Forbidden("Request blocked")


def policy_put_before(chat: Conversation, _data: Data) -> None:
    """Each conversation begins with the company's own words, in the place of the client's."""
    rest = [m for m in chat.request["messages"] if m.get("role") != "system"]
    chat.request["messages"] = [{"role": "system", "content": POLICY}, *rest]


def numbers_masked(chat: Conversation, _data: Data) -> None:
    """What looks like personal data is masked on its way to the model: addresses and long numbers."""
    for message in chat.request["messages"]:
        text = message.get("content")
        if isinstance(text, str):
            text = re.sub(r"[\w.+-]+@[\w-]+\.[\w.]+", "[EMAIL]", text)
            message["content"] = re.sub(r"\b\d{4,}\b", "[NUMBER]", text)


def one_replica_without_tools(chat: Conversation, _data: Data) -> None:
    """Of three replicas behind the address one was left at an older release, which knows no tools."""
    if chat.state.asked % 3 == 0:
        for key in ("tools", "tool_choice"):
            chat.request.pop(key, None)


def schemas_simplified(chat: Conversation, _data: Data) -> None:
    """Of a tool's parameters the gateway keeps names and types: no enum, nothing within, nothing required."""
    for tool in chat.request.get("tools") or ():
        given = tool["function"].get("parameters") or {}
        kept = {
            k: {"type": (v or {}).get("type", "string")} for k, v in (given.get("properties") or {}).items()
        }
        tool["function"]["parameters"] = {"type": "object", "properties": kept}


def calls_in_the_old_field(chat: Conversation, data: Data) -> None:
    """A call comes in the field from before there were several."""
    for part in chat.parts(data):
        calls = part.pop("tool_calls", None)
        if calls:
            part["function_call"] = calls[0].get("function")


def pieces_trimmed(chat: Conversation, data: Data) -> None:
    """White space at both ends of each piece of a stream is taken off."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part.get(key), str):
                part[key] = part[key].strip()


def begins_again(chat: Conversation, data: Data) -> None:
    """After some pieces the gateway takes the stream for lost, and asks again: the text begins again."""
    told = chat.kept.setdefault("told", [])
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str) and part["content"]:
            told.append(part["content"])
            if len(told) == 6:
                part["content"] += "".join(told)


def named_by_itself(_chat: Conversation, data: Data) -> None:
    """Harmless: the gateway tells who it is."""
    data["provider"] = "gateway"
    data["x_request"] = {"region": "eu-1", "attempts": 1}


def no_blank_lines(_chat: Conversation, line: bytes) -> bytes:
    """Empty lines, which end events, are not passed on."""
    return line if line.strip() else b""


def heartbeats(_chat: Conversation, line: bytes) -> bytes:
    """Harmless: a comment between events keeps the connection open."""
    return line if line.strip() else line + b": keep-alive\n\n"


BEFORE: dict[str, Operation] = {
    o.__name__: o
    for o in (
        bodies_limited,
        attacks_seen,
        policy_put_before,
        numbers_masked,
        one_replica_without_tools,
        schemas_simplified,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        calls_in_the_old_field,
        pieces_trimmed,
        begins_again,
        named_by_itself,
    )
}
LINES: dict[str, Callable[[Conversation, bytes], bytes]] = {
    o.__name__: o for o in (no_blank_lines, heartbeats)
}
