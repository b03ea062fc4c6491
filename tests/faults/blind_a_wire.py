"""What other gateways do to chats: further operations of ``wire.py``. Only Python's own library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tests.faults.conversation import Broken, Busy, Conversation, Data, Operation

ROOM = 2048  # bytes of a request
EVENTS = 16  # of a stream
KNOWN = {"model", "messages", "tools", "stream", "max_tokens", "temperature", "top_p", "stop", "tool_choice"}
ATTACK = re.compile(r"<script|\.\./|/etc/passwd|union\s+select|;\s*(?:rm|curl|wget)\s", re.IGNORECASE)
POLICY = "You are the assistant of this company. Answer in words and be brief."
DIALECT = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


class TooLarge(Broken):
    """The body is larger than the gateway takes."""

    status = 413


class Unprocessable(Broken):
    """The gateway knows the request's form, and takes no other."""

    status = 422


class Forbidden(Broken):
    """A firewall before the gateway."""

    status = 403


def bodies_limited(chat: Conversation, _data: Data) -> None:
    """Requests of more than two KiB are turned down."""
    if len(json.dumps(chat.request)) > ROOM:
        raise TooLarge("<html><title>413 Request Entity Too Large</title></html>")


def unknown_fields_refused(chat: Conversation, _data: Data) -> None:
    """A request may hold what the gateway's own schema has, and nothing else."""
    unknown = sorted(set(chat.request) - KNOWN)
    if unknown:
        raise Unprocessable(f"Extra inputs are not permitted: {', '.join(unknown)}")


def attacks_seen(chat: Conversation, _data: Data) -> None:
    """A firewall reads prompts, and takes what looks like an attack on a page for one."""
    if ATTACK.search(json.dumps(chat.request["messages"], ensure_ascii=False)):
        raise Forbidden("Request blocked")


def policy_put_before(chat: Conversation, _data: Data) -> None:
    """Each conversation begins with the company's own words, in the place of the client's."""
    rest = [m for m in chat.request["messages"] if m.get("role") != "system"]
    chat.request["messages"] = [{"role": "system", "content": POLICY}, *rest]


def limit_of_sixteen(chat: Conversation, _data: Data) -> None:
    """Who says no limit of tokens gets the old interface's: sixteen."""
    if not chat.request.get("max_completion_tokens"):
        chat.request.setdefault("max_tokens", 16)


def numbers_masked(chat: Conversation, _data: Data) -> None:
    """What looks like personal data is masked on its way to the model: addresses and long numbers."""
    for message in chat.request["messages"]:
        text = message.get("content")
        if isinstance(text, str):
            text = re.sub(r"[\w.+-]+@[\w-]+\.[\w.]+", "[EMAIL]", text)
            message["content"] = re.sub(r"\b\d{4,}\b", "[NUMBER]", text)


def first_part_only(chat: Conversation, _data: Data) -> None:
    """Of a message in parts the first one is passed on."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), list):
            message["content"] = message["content"][0].get("text") or ""


def far_letters_lost(chat: Conversation, _data: Data) -> None:
    """Requests go through a table whose letters have three bytes at most."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = "".join(c if ord(c) < 0x10000 else "?" for c in message["content"])


def options_of_streams_lost(chat: Conversation, _data: Data) -> None:
    """The gateway knows no options of a stream, and drops them: usage never comes."""
    chat.request.pop("stream_options", None)


def one_replica_without_tools(chat: Conversation, _data: Data) -> None:
    """Of three replicas behind the address one was left at an older release, which knows no tools."""
    if chat.state.asked % 3 == 0:
        for key in ("tools", "tool_choice"):
            chat.request.pop(key, None)


def one_in_five_fails(chat: Conversation, _data: Data) -> None:
    """Each fifth request meets a connection that the engine has closed long ago."""
    if chat.state.asked % 5 == 0:
        raise Broken("upstream connect error or disconnect/reset before headers")


def twenty_a_window(chat: Conversation, _data: Data) -> None:
    """After twenty requests a client is told to slow down."""
    if chat.state.asked > 20:
        busy = Busy("Rate limit reached for requests")
        busy.status = 429
        raise busy


def schemas_simplified(chat: Conversation, _data: Data) -> None:
    """Of a tool's parameters the gateway keeps names and types: no enum, nothing within, nothing required."""
    for tool in chat.request.get("tools") or ():
        given = tool["function"].get("parameters") or {}
        kept = {k: {"type": (v or {}).get("type", "string")} for k, v in (given.get("properties") or {}).items()}
        tool["function"]["parameters"] = {"type": "object", "properties": kept}


def names_made_safe(chat: Conversation, _data: Data) -> None:
    """Tools' names go to the engine in small letters, digits and underscores, and come back so."""

    def safe(name: str) -> str:
        return re.sub(r"[^a-z0-9_]", "_", name.lower())

    for tool in chat.request.get("tools") or ():
        tool["function"]["name"] = safe(tool["function"]["name"])
    for message in chat.request["messages"]:
        for call in message.get("tool_calls") or ():
            call["function"]["name"] = safe(call["function"]["name"])


def streams_made_whole(chat: Conversation, _data: Data) -> None:
    """The gateway asks for whole answers, and passes them on as they are."""
    chat.request["stream"] = False


def finish_in_another_dialect(_chat: Conversation, data: Data) -> None:
    """Answers end with the words of another interface."""
    for choice in data.get("choices") or ():
        choice["finish_reason"] = DIALECT.get(choice.get("finish_reason"), choice.get("finish_reason"))


def calls_in_the_old_field(chat: Conversation, data: Data) -> None:
    """A call comes in the field from before there were several."""
    for part in chat.parts(data):
        calls = part.pop("tool_calls", None)
        if calls:
            part["function_call"] = calls[0].get("function")


def content_in_parts(chat: Conversation, data: Data) -> None:
    """Content of whole answers is a list of parts."""
    for part in chat.parts(data) if chat.whole else ():
        if isinstance(part.get("content"), str):
            part["content"] = [{"type": "text", "text": part["content"]}]


def pieces_trimmed(chat: Conversation, data: Data) -> None:
    """White space at both ends of each piece of a stream is taken off."""
    for part in () if chat.whole else chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part.get(key), str):
                part[key] = part[key].strip()


def pieces_hold_all(chat: Conversation, data: Data) -> None:
    """Each piece of a stream holds all the text so far."""
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str):
            chat.kept["text"] = part["content"] = chat.kept.get("text", "") + part["content"]


def pieces_change_places(chat: Conversation, data: Data) -> None:
    """Each second piece of text of a stream comes before the one that it follows."""
    for choice in () if chat.whole else data.get("choices") or ():
        delta = choice.get("delta") or {}
        if delta.get("content"):
            held = chat.kept.pop("first", None)
            if held is None:
                chat.kept["first"], delta["content"] = delta["content"], ""
            else:
                delta["content"] += held
        elif choice.get("finish_reason") and "first" in chat.kept:
            delta["content"] = chat.kept.pop("first")


def begins_again(chat: Conversation, data: Data) -> None:
    """After some pieces the gateway takes the stream for lost and asks again: the text comes from its start."""
    told = chat.kept.setdefault("told", [])
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str) and part["content"]:
            told.append(part["content"])
            if len(told) == 6:
                part["content"] += "".join(told)


def chances_lost(_chat: Conversation, data: Data) -> None:
    """Nobody passes on how likely tokens were."""
    for choice in data.get("choices") or ():
        choice.pop("logprobs", None)


def named_by_itself(_chat: Conversation, data: Data) -> None:
    """Harmless: the gateway tells who it is."""
    data["provider"] = "gateway"
    data["x_request"] = {"region": "eu-1", "attempts": 1}


def long_streams_end(chat: Conversation, data: Data) -> None:
    """Behind so many pieces a stream is over, as if it were whole."""
    for choice in () if chat.whole else data.get("choices") or ():
        chat.kept["events"] = chat.kept.get("events", 0) + 1
        if chat.kept["events"] > EVENTS:
            choice["delta"], choice["finish_reason"] = {}, "stop"


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
        unknown_fields_refused,
        attacks_seen,
        policy_put_before,
        limit_of_sixteen,
        numbers_masked,
        first_part_only,
        far_letters_lost,
        options_of_streams_lost,
        one_replica_without_tools,
        one_in_five_fails,
        twenty_a_window,
        schemas_simplified,
        names_made_safe,
        streams_made_whole,
    )
}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        finish_in_another_dialect,
        calls_in_the_old_field,
        content_in_parts,
        pieces_trimmed,
        pieces_hold_all,
        pieces_change_places,
        begins_again,
        chances_lost,
        long_streams_end,
        named_by_itself,
    )
}
LINES: dict[str, Callable[[Conversation, bytes], bytes]] = {
    o.__name__: o for o in (no_blank_lines, heartbeats)
}
