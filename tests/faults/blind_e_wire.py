"""Operations of the blind round e: what servers and gateways do to chats. Only Python's own library."""

from __future__ import annotations

import html

from tests.faults.conversation import Broken, Conversation, Data, Operation

CROWD = 3  # requests at once
OTHER_ENDS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class Limit(Broken):
    """The gateway tells its limit in an answer that looks like a success."""

    status = 200


def limit_as_success(chat: Conversation, _data: Data) -> None:
    """Where many ask at once, the last get an error with the status of a success."""
    if len(chat.state.flying) > CROWD:
        raise Limit("Rate limit exceeded, retry after 20 seconds")


def content_in_parts(chat: Conversation, _data: Data) -> None:
    """Each text of a request becomes a list of one part that holds it."""
    for message in chat.request["messages"]:
        if isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]


def none_as_text(chat: Conversation, data: Data) -> None:
    """Where a call has no content, the word for nothing is its content."""
    for part in chat.parts(data) if chat.whole else ():
        if part.get("tool_calls") and not (part.get("content") or "").strip():
            part["content"] = "None"


def first_words_lost(chat: Conversation, data: Data) -> None:
    """A stream's first event with words in its content opens a block of text, and its words are forgotten."""
    for part in () if chat.whole else chat.parts(data):
        if not chat.kept.get("begun") and (part.get("content") or "").strip():
            chat.kept["begun"] = True
            part.pop("content")


def deltas_whole(chat: Conversation, data: Data) -> None:
    """Each event of a stream has all of the content so far."""
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = chat.kept["so far"] = chat.kept.get("so far", "") + part["content"]


def deltas_trimmed(chat: Conversation, data: Data) -> None:
    """Each event's content has no white space at its ends."""
    for part in () if chat.whole else chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = part["content"].strip()


def ends_of_another_interface(_chat: Conversation, data: Data) -> None:
    """Why an answer ends is told in the words of another company's interface."""
    for choice in data.get("choices") or ():
        reason = choice.get("finish_reason")
        choice["finish_reason"] = OTHER_ENDS.get(reason, reason)


def cached_not_counted(_chat: Conversation, data: Data) -> None:
    """Tokens of the prompt that came from a cache are not counted."""
    usage = data.get("usage")
    if isinstance(usage, dict):
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        usage["prompt_tokens"] -= cached
        usage["total_tokens"] -= cached


def answers_escaped(chat: Conversation, data: Data) -> None:
    """Answers are made safe for a web page before they are sent."""
    for part in chat.parts(data):
        if isinstance(part.get("content"), str):
            part["content"] = html.escape(part["content"])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = html.escape(function["arguments"])


def calls_by_name(chat: Conversation, data: Data) -> None:
    """Of several calls of one tool the last alone comes out: they are kept by name."""
    for part in chat.parts(data):
        calls = part.get("tool_calls")
        if calls:
            part["tool_calls"] = list({call["function"]["name"]: call for call in calls}.values())


BEFORE: dict[str, Operation] = {o.__name__: o for o in (limit_as_success, content_in_parts)}
AFTER: dict[str, Operation] = {
    o.__name__: o
    for o in (
        none_as_text,
        first_words_lost,
        deltas_whole,
        deltas_trimmed,
        ends_of_another_interface,
        cached_not_counted,
        answers_escaped,
        calls_by_name,
    )
}
