"""Conversations whose prompts are compared: requests as clients send them, each text in them unique.

A leaf is one text of a conversation with its place, so that a prompt shows which of them it lost. The form of
messages is that of OpenAI's API; ``shaped`` turns them into the forms that chat templates ask for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from importer.chat_template.cases import CaseStyle
from importer.chat_template.samples import Function, Tool
from importer.engines.parsers import Conversation
from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.proof.result import PromptCase

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)


class Field(StrEnum):
    """The places of texts."""

    CONTENT = "content"
    ARGUMENTS = "arguments"
    NAME = "name"
    REASONING = "reasoning"
    TOOL = "tool"


@frozen
class Leaf:
    """One value of a conversation: ``message`` is its number, ``None`` for the tools on offer."""

    message: int | None
    role: str
    field: Field
    value: Any


PLACE = {
    "type": "object",
    "description": "Ground <b>station</b> & mast",
    "properties": {"lat": {"type": "number"}, "label": {"type": ["string", "null"], "default": None}},
}
TOOLS: tuple[Tool, ...] = (
    {
        "type": "function",
        "function": {
            "name": "read_gauge",
            "description": 'Read a gauge\'s level, e.g. "Zürich".',
            "parameters": {
                "type": "object",
                "properties": {
                    "river": {"type": "string", "description": "Name of a river."},
                    "unit": {"type": "string", "enum": ["metre", "fathom"]},
                    "stations": {"type": "array", "items": {"type": "string"}},
                    "place": PLACE,
                    "live": {"type": "boolean", "default": True},
                },
                "required": ["river"],
            },
        },
    },
)
SIMPLE = {"river": "Isar"}
NESTED = {
    "river": "Weser & <Aller>",
    "stations": ["Minden", "Höxter"],
    "place": {"lat": 52.5, "label": None},
    "live": True,
}


def _user(content: Any) -> dict[str, object]:
    return {"role": "user", "content": content}


def _text(text: str) -> list[dict[str, object]]:
    return [{"type": "text", "text": text}]


def _called(*arguments: Mapping[str, object], **more: Any) -> dict[str, object]:
    calls = [
        {
            "id": f"c4ll{n:05}",
            "type": "function",
            "function": {"name": "read_gauge", "arguments": json.dumps(a, ensure_ascii=False)},
        }
        for n, a in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def _result(content: Any, number: int = 0) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"c4ll{number:05}", "name": "read_gauge", "content": content}


ASK = _user("How high stands the river?")
IMAGE = {"type": "image_url", "image_url": {"url": PIXEL}}
CONVERSATIONS: Mapping[PromptCase, Conversation] = {
    PromptCase.PLAIN: Conversation([_user("Name a harbour on the Elbe.")]),
    PromptCase.SYSTEM: Conversation([{"role": "system", "content": "Reply like a ferryman."}, ASK]),
    PromptCase.TURNS: Conversation(
        [ASK, {"role": "assistant", "content": "Two fathoms under the keel."}, _user("Since Tuesday?")]
    ),
    PromptCase.USER_PARTS: Conversation([_user(_text("Which lock opens at dawn?"))]),
    PromptCase.SYSTEM_PARTS: Conversation(
        [{"role": "system", "content": _text("Keep to nautical words.")}, ASK]
    ),
    PromptCase.TOOLS: Conversation([ASK], TOOLS),
    PromptCase.CALL: Conversation([ASK, _called(SIMPLE), _result("Calm, 312 cm.")], TOOLS),
    PromptCase.RESULT_PARTS: Conversation([ASK, _called(SIMPLE), _result(_text("Rising, 417 cm."))], TOOLS),
    PromptCase.RESULTS: Conversation(
        [ASK, _called(SIMPLE, {"river": "Naab"}), _result("Low, 95 cm."), _result("Ebbing, 140 cm.", 1)],
        TOOLS,
    ),
    PromptCase.NESTED: Conversation([ASK, _called(NESTED), _result("Falling, 288 cm.")], TOOLS),
    PromptCase.REASONING: Conversation(
        [
            ASK,
            _called(SIMPLE, reasoning="A gauge must be read.", reasoning_content="A gauge must be read."),
            _result("Steady, 201 cm."),
        ],
        TOOLS,
    ),
    PromptCase.IMAGE: Conversation([_user([*_text("Seen at noon:"), IMAGE, *_text("Which boat is this?")])]),
}


def leaves(conversation: Conversation) -> tuple[Leaf, ...]:
    """Return every value of a conversation that its prompt should hold, in their order."""
    tools = (leaf for tool in conversation.tools for leaf in _tool_leaves(tool["function"]))
    return (*tools, *(leaf for n, m in enumerate(conversation.messages) for leaf in _leaves(n, m)))


def _leaves(number: int, message: Mapping[str, Any]) -> Iterator[Leaf]:
    role, content = message["role"], message.get("content")
    if message.get("reasoning"):
        yield Leaf(number, role, Field.REASONING, message["reasoning"])
    for part in content if isinstance(content, list) else ():
        if "text" in part:
            yield Leaf(number, role, Field.CONTENT, part["text"])
    if isinstance(content, str) and content:
        yield Leaf(number, role, Field.CONTENT, content)
    for call in message.get("tool_calls") or ():
        yield Leaf(number, role, Field.NAME, call["function"]["name"])
        for value in json.loads(call["function"]["arguments"]).values():
            yield Leaf(number, role, Field.ARGUMENTS, value)


def _tool_leaves(function: Function) -> Iterator[Leaf]:
    yield Leaf(None, "", Field.TOOL, function["name"])
    yield Leaf(None, "", Field.TOOL, function["description"])
    for name in mapping(function["parameters"]["properties"]):
        yield Leaf(None, "", Field.TOOL, name)


# The forms of messages that templates ask for; the first is that of engines.
SHAPES: tuple[CaseStyle, ...] = (
    CaseStyle(),
    CaseStyle(arguments="text"),
    CaseStyle(empty="null"),
    CaseStyle(empty="absent"),
    CaseStyle(arguments="text", empty="null"),
    CaseStyle(arguments="text", empty="absent"),
    CaseStyle(parts=True),
    CaseStyle(parts=True, arguments="text"),
    CaseStyle(parts=True, empty="absent"),
    CaseStyle(flat=True),
    CaseStyle(flat=True, arguments="text"),
    CaseStyle(reasoning="thinking"),
    CaseStyle(reasoning="tool_plan"),
)


def shaped(conversation: Conversation, shape: CaseStyle) -> list[dict[str, object]]:
    """Return the messages of a conversation in the form of ``shape``."""
    return [_shaped(message, shape) for message in conversation.messages]


def _shaped(message: Mapping[str, Any], shape: CaseStyle) -> dict[str, object]:
    turn = {k: v for k, v in message.items() if k not in ("content", "reasoning", "reasoning_content")}
    thought = message.get("reasoning")
    if thought and shape.reasoning in ("thinking", "tool_plan"):
        turn[shape.reasoning] = thought
    elif thought:
        turn |= {"reasoning": thought, "reasoning_content": thought}
    content = message.get("content")
    if content is not None:
        turn["content"] = _content(content, parts=shape.parts)
    elif shape.empty != "absent":
        turn["content"] = "" if shape.empty == "text" else None
    if "tool_calls" in turn:
        turn["tool_calls"] = [_call(call, shape) for call in turn["tool_calls"]]
    return turn


def _content(content: Any, *, parts: bool) -> Any:
    if isinstance(content, str):
        return _text(content) if parts else content
    if any(part["type"] != "text" for part in content):
        return [part if part["type"] == "text" else {"type": "image"} for part in content]
    return content if parts else "\n".join(part["text"] for part in content)


def _call(call: Mapping[str, Any], shape: CaseStyle) -> dict[str, object]:
    function = dict(call["function"])
    if shape.arguments == "object":
        function["arguments"] = json.loads(function["arguments"])
    return {"id": call["id"], **function} if shape.flat else {**call, "function": function}


def cases(*, images: bool) -> Sequence[PromptCase]:
    """Return the cases, those with images only where the model sees."""
    return [case for case in PromptCase if images or case is not PromptCase.IMAGE]
