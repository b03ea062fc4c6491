"""What a prompt is: a conversation, the tools on offer, and what a right answer holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Message = Mapping[str, Any]
Tool = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation and the tools offered.

    ``expects``  words one of which a right answer holds, in lower case.
    ``switches`` variables for the chat template, where the probe is about them.
    ``extra``    further fields of the request: ``tool_choice``, ``stop``, ``max_tokens`` …
    ``begins``   whether it ends where the assistant is to speak, as every one does that is sent.
    """

    name: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    expects: tuple[str, ...] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    begins: bool = True


def user(text: str) -> Message:
    """A user's turn."""
    return {"role": "user", "content": text}


def call(number: int, name: str, arguments: Mapping[str, Any]) -> Message:
    """An assistant's turn that calls a tool.

    The id has nine letters and digits, the only form that every template takes.
    """
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    made = {"id": call_id(number), "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [made]}


def result(number: int, name: str, value: Mapping[str, Any]) -> Message:
    """What the tool answered to call ``number``."""
    return {"role": "tool", "tool_call_id": call_id(number), "name": name, "content": json.dumps(value)}


def call_id(number: int) -> str:
    """``call00001`` and so on."""
    return f"call{number:05d}"


def function(name: str, description: str, properties: Mapping[str, Any], *required: str) -> Tool:
    """A tool as the OpenAI API describes it; every property is required unless ``required`` names some."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required) or list(properties),
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }
