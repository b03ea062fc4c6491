"""What a gateway between a client and its engine may do: more operations of ``wire.py``."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.faults.conversation import Conversation, Data


def names_repeated(chat: Conversation, data: Data) -> None:
    """Streamed calls come in two pieces, and each has the name."""
    if chat.whole or not any(chat.calls(data)):
        return
    second = copy.deepcopy(data)
    for call, rest in zip(chat.calls(data), chat.calls(second), strict=True):
        text = (call.get("function") or {}).get("arguments") or ""
        half = len(text) // 2
        call["function"]["arguments"], rest["function"]["arguments"] = text[:half], text[half:]
        rest.pop("id", None)
    for choice in data["choices"]:
        choice["finish_reason"] = None
    data.pop("usage", None)
    chat.kept["more"] = [second]


def no_index(chat: Conversation, data: Data) -> None:
    """Streamed calls do not say which one they are of."""
    for call in () if chat.whole else chat.calls(data):
        call.pop("index", None)


def thoughts_renamed(chat: Conversation, data: Data) -> None:
    """Thoughts come under a name that clients of this interface do not know."""
    for part in chat.parts(data):
        thoughts = [part.pop(key, None) for key in ("reasoning", "reasoning_content")]
        if thought := next((t for t in thoughts if t), None):
            part["thinking"] = thought


def plain_ends_as_call(chat: Conversation, data: Data) -> None:
    """Where tools were offered every answer ends as a call does."""
    for choice in data.get("choices") or ():
        if chat.request.get("tools") and choice.get("finish_reason") == "stop":
            choice["finish_reason"] = "tool_calls"


def whole_numbers_pointed(chat: Conversation, data: Data) -> None:
    """The relay knows one kind of number: 2 comes out as 2.0."""

    def pointed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: pointed(v) for k, v in value.items()}
        if isinstance(value, list):
            return [pointed(v) for v in value]
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    chat.rewrite(data, pointed)


def role_left_out(chat: Conversation, data: Data) -> None:
    """No message has a role."""
    for part in chat.parts(data):
        part.pop("role", None)


def arguments_added(chat: Conversation, data: Data) -> None:
    """Calls come with an argument of the relay's own."""
    chat.rewrite(data, lambda given: {**given, "trace_id": None})


ANSWERS: dict[str, str] = {}  # what each question was answered, of the whole process


def answers_remembered(chat: Conversation, data: Data) -> None:
    """A question that was asked before gets the answer of then, whatever else has been said."""
    if not chat.whole:
        return
    asked = [m.get("content") for m in chat.request["messages"] if m.get("role") == "user"]
    key = json.dumps(asked[-1:])
    data["choices"] = json.loads(ANSWERS.setdefault(key, json.dumps(data["choices"])))


def results_reversed(chat: Conversation, _data: Data) -> None:
    """Of several results the last comes first, and the template goes by their places."""
    messages = chat.request["messages"]
    at = 0
    while at < len(messages):
        end = at
        while end < len(messages) and messages[end].get("role") == "tool":
            end += 1
        messages[at:end] = messages[at:end][::-1]
        at = max(end, at + 1)


def letters_as_latin_1(chat: Conversation, data: Data) -> None:
    """UTF-8 is read as Latin-1, so that each letter of several bytes is as many letters."""

    def read(text: str) -> str:
        return text.encode().decode("latin-1")

    for part in chat.parts(data):
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part.get(key), str):
                part[key] = read(part[key])
    for call in chat.calls(data):
        function = call.get("function") or {}
        if isinstance(function.get("arguments"), str):
            function["arguments"] = read(function["arguments"])


def no_done(_chat: Conversation, line: bytes) -> bytes:
    """A stream just ends."""
    return b"" if b"[DONE]" in line else line
