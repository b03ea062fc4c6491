"""What servers have done to answers by public reports: more operations of ``wire.py``."""

from __future__ import annotations

import json
from typing import Any

from tests.faults.conversation import Broken, Conversation, Data

LARGE = 1800  # bytes
MORE = 8  # tokens
THOUGHTS = ("reasoning", "reasoning_content")


def _ends(data: Data, old: str | None, new: str | None) -> None:
    for choice in data.get("choices") or ():
        if choice.get("finish_reason") == old:
            choice["finish_reason"] = new


def call_ends_in_singular(_chat: Conversation, data: Data) -> None:
    """A call ends with a word that the interface does not have: ``tool_call``."""
    _ends(data, "tool_calls", "tool_call")


def streamed_calls_vanish(chat: Conversation, data: Data) -> None:
    """A streamed call does not arrive, and its stream ends like a plain answer."""
    for part in () if chat.whole else chat.parts(data):
        part.pop("tool_calls", None)
    if not chat.whole:
        _ends(data, "tool_calls", "stop")


def calls_vanish(chat: Conversation, data: Data) -> None:
    """No call arrives, whole or streamed, and the answer ends as a plain one."""
    for part in chat.parts(data):
        part.pop("tool_calls", None)
    _ends(data, "tool_calls", "stop")


def calls_in_the_thought(chat: Conversation, data: Data) -> None:
    """A call arrives as text behind the thought."""
    for part in chat.parts(data):
        for call in part.pop("tool_calls", None) or ():
            function = call.get("function") or {}
            told = f'{{"name": "{function.get("name")}", "arguments": {function.get("arguments")}}}'
            part["reasoning"] = f"{part.get('reasoning') or ''}<tool_call>\n{told}\n</tool_call>"
    _ends(data, "tool_calls", "stop")


def answer_beside_tools_as_thought(chat: Conversation, data: Data) -> None:
    """Where tools are offered, the words of a stream arrive as a thought."""
    for part in () if chat.whole or not chat.request.get("tools") else chat.parts(data):
        if words := part.pop("content", None):
            part["reasoning"] = (part.get("reasoning") or "") + words


def streamed_thoughts_vanish(chat: Conversation, data: Data) -> None:
    """The thoughts of a stream do not arrive."""
    for part in () if chat.whole else chat.parts(data):
        for key in THOUGHTS:
            part.pop(key, None)


def thoughts_shown_behind_results(chat: Conversation, data: Data) -> None:
    """Behind a tool's result, the thoughts of a stream arrive as content."""
    told = any(message.get("role") == "tool" for message in chat.request["messages"])
    for part in chat.parts(data) if told and not chat.whole else ():
        for key in THOUGHTS:
            if thought := part.pop(key, None):
                part["content"] = (part.get("content") or "") + thought


def cut_calls_break(chat: Conversation, data: Data) -> None:
    """A call that the limit of tokens cuts is an error of the server."""
    for choice in data.get("choices") or ():
        if chat.whole and chat.request.get("tools") and choice.get("finish_reason") == "length":
            raise Broken("ValueError: No function provided.")


def results_in_parts(chat: Conversation, _data: Data) -> None:
    """The template gets a tool's result as a list of parts, which it has no words for."""
    for message in chat.request["messages"]:
        if message.get("role") == "tool":
            message["content"] = "<tools>\n</tools>"


def prompt_counted_as_none(_chat: Conversation, data: Data) -> None:
    """usage has 0 tokens for every prompt."""
    if isinstance(data.get("usage"), dict):
        data["usage"]["prompt_tokens"] = 0


def large_fails(chat: Conversation, _data: Data) -> None:
    """A long request fails behind the gateway."""
    chat.kept["failed"] = len(json.dumps(chat.request)) > LARGE


def failure_is_empty(chat: Conversation, data: Data) -> None:
    """The gateway answers a request that failed with 200 and nothing."""
    if chat.kept.get("failed"):
        data["usage"] = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)
        for part in chat.parts(data):
            part.clear()
            part.update(role="assistant", content="")


def limit_exceeded_in_streams(chat: Conversation, _data: Data) -> None:
    """A streamed answer may have more tokens than the request allows."""
    if not chat.whole and chat.request.get("max_tokens"):
        chat.request["max_tokens"] += MORE


def stop_dropped(chat: Conversation, _data: Data) -> None:
    """Stop strings of a request do not get through."""
    chat.request.pop("stop", None)


def choice_of_none_dropped(chat: Conversation, _data: Data) -> None:
    """A request that forbids calls is passed on as one that allows them."""
    if chat.request.get("tool_choice") == "none":
        chat.request.pop("tool_choice")


def keywords_dropped(chat: Conversation, _data: Data) -> None:
    """Keywords of schemas do not get through."""

    def deep(value: Any) -> Any:
        if isinstance(value, list):
            return [deep(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {k: deep(v) for k, v in value.items() if k not in ("enum", "const", "minimum", "items")}

    if chat.request.get("tools"):
        chat.request["tools"] = deep(chat.request["tools"])


SEEN: set[str] = set()  # requests of the whole process


def last_word_twice(chat: Conversation, _data: Data) -> None:
    """A prompt that was there before is read with its last word twice."""
    key = json.dumps(chat.request, sort_keys=True)
    last = chat.request["messages"][-1]
    if key in SEEN and isinstance(last.get("content"), str):
        last["content"] += last["content"].split()[-1]
    SEEN.add(key)


def other_bytes(_chat: Conversation, data: Data) -> None:
    """The bytes of a token are those of another text."""
    for choice in data.get("choices") or ():
        for entry in (choice.get("logprobs") or {}).get("content") or ():
            if entry.get("bytes"):
                entry["bytes"] = [one ^ 1 for one in entry["bytes"]]
