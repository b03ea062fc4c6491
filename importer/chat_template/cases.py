"""Cases: the conversations that importer renders, in the messages of serving code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from importer.chat_template.samples import SampleCall, Tool
from importer.frozen import frozen

QUESTION = "How is the weather over there?"
FOLLOW_UP = "And the day after?"
ANSWER = "It stays calm and clear."
SECOND_ANSWER = "Bring a light coat."
NARRATION = "Let me look that up."
REASONING = "The user wants a forecast, so weigh it first."
SECOND_REASONING = "One more point matters here."
AFTERWARDS = "That is all I need."
SERVER_ID = "c4ll"  # ids begin so; a model writes none of them
RESULT = '{"sky": "overcast"}'


def _tool(name: str, description: str, properties: Mapping[str, object], required: Sequence[str]) -> Tool:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def _of(kind: Any, description: str, **more: Any) -> dict[str, object]:
    return {"type": kind, "description": description, **more}


_PLACE = _of(
    "object",
    "Where it is.",
    properties={"lat": _of("number", "Latitude."), "lon": _of("number", "Longitude.")},
)
TOOLS: tuple[Tool, ...] = (
    _tool("get_weather", "Report the weather of a city.", {"city": _of("string", "The city.")}, ["city"]),
    _tool(
        "find_hotel",
        "Find a hotel.",
        {"area": _of("string", "Part of the city."), "stars": _of("integer", "At least so many.")},
        ["area"],
    ),
    _tool("list_alarms", "List every alarm that is set.", {}, []),
    _tool("send_note", "Send a note.", {"text": _of("string", "What it says.")}, ["text"]),
    _tool(
        "set_reading",
        "Store a reading.",
        {
            "count": _of("integer", "How many."),
            "ratio": _of("number", "Which part."),
            "urgent": _of("boolean", "Whether it hurries."),
            "quiet": _of("boolean", "Whether nobody is told."),
        },
        [],
    ),
    _tool(
        "plan_trip",
        "Plan a trip.",
        {
            "stop": _of(
                "object", "A stop.", properties={"name": _of("string", "Its name."), "place": _PLACE}
            ),
            "cities": _of("array", "Cities on the way.", items=_of("string", "A city.")),
        },
        [],
    ),
)
# Apart from the others, because some templates cannot describe a parameter of two types.
CLEAR = _tool("set_comment", "Replace the comment.", {"comment": _of(["string", "null"], "The comment.")}, [])

ONE = SampleCall("get_weather", {"city": "Paris"})
OTHER = SampleCall("find_hotel", {"area": "harbour", "stars": 4})
AGAIN = SampleCall("get_weather", {"city": "Lisbon"})
CALLS: Mapping[str, tuple[SampleCall, ...]] = {
    "one-call": (ONE,),
    "parallel": (ONE, OTHER),
    "no-arguments": (SampleCall("list_alarms", {}),),
    "nested": (SampleCall("plan_trip", {"stop": {"name": "Lyon", "place": {"lat": 45.5, "lon": 4}}}),),
    "array": (SampleCall("plan_trip", {"cities": ["Rome", "Bern"]}),),
    "numbers": (SampleCall("set_reading", {"count": -3, "ratio": 0.25}),),
    "booleans": (SampleCall("set_reading", {"urgent": True, "quiet": False}),),
    "null": (SampleCall("set_comment", {"comment": None}),),
    "numeric-text": (SampleCall("send_note", {"text": "42"}),),
    "quotes": (SampleCall("send_note", {"text": 'She said "no", it\'s 5 < 6 & done'}),),
    "newlines": (SampleCall("send_note", {"text": "first\nsecond\n\tthird \\ end"}),),
    "non-ascii": (SampleCall("send_note", {"text": "Zürich 東京 🙂"}),),
}


@frozen
class Turn:
    """One turn of a conversation, independent of the form of messages."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[SampleCall, ...] = ()
    reasoning: str = ""


ASK = Turn("user", QUESTION)
ASK_AGAIN = Turn("user", FOLLOW_UP)


@frozen
class CaseStyle:
    """The form of messages for a template; the first form that the template can render is used.

    ``arguments``  as an object, or as JSON text for templates that print them unchanged.
    ``ids``        nine characters and digits as Mistral requires, or ``functions.name:0`` as Kimi prints.
    ``empty``      the value for no content: ``""``, ``None`` or no key.
    ``parts``      content as a list of text parts.
    ``flat``       name and arguments in the call itself, without ``function``.
    ``reasoning``  the field that holds reasoning; ``parts`` is a part of the content.
    ``system``     whether a system turn stands first.
    ``tail``       role of a last turn, for templates that refuse to end with the assistant.
    """

    arguments: Literal["object", "text"] = "object"
    ids: Literal["nine", "functions"] = "nine"
    empty: Literal["text", "null", "absent"] = "text"
    parts: bool = False
    flat: bool = False
    reasoning: Literal["reasoning_content", "thinking", "tool_plan", "parts"] = "reasoning_content"
    system: bool = False
    tail: Literal["", "tool", "user"] = ""

    def messages(self, turns: Sequence[Turn]) -> list[dict[str, object]]:
        """Return the turns as OpenAI messages; calls are numbered through the conversation."""
        lead = [Turn("system", "You are a helpful assistant.")] if self.system else []
        written: list[dict[str, object]] = []
        count = 0
        for turn in [*lead, *turns]:
            if turn.role == "tool":
                written.append(self._result(written, turn))
                continue
            message: dict[str, object] = {"role": turn.role} | self._content(turn)
            if turn.calls:
                message["tool_calls"] = [self._call(c, count + i) for i, c in enumerate(turn.calls)]
                count += len(turn.calls)
            written.append(message)
        return written

    def _content(self, turn: Turn) -> dict[str, object]:
        fields: dict[str, object] = {}
        if turn.reasoning and self.reasoning == "reasoning_content":
            fields = {"reasoning_content": turn.reasoning, "reasoning": turn.reasoning}
        elif turn.reasoning and self.reasoning in {"thinking", "tool_plan"}:
            fields = {self.reasoning: turn.reasoning}
        elif turn.reasoning:
            thought = {"type": "thinking", "thinking": turn.reasoning}
            text = [{"type": "text", "text": turn.text}] if turn.text else []
            return {"content": [thought, *text]}
        if turn.calls and not turn.text and self.empty != "text":
            return fields | ({"content": None} if self.empty == "null" else {})
        return fields | {"content": [{"type": "text", "text": turn.text}] if self.parts else turn.text}

    def _call(self, call: SampleCall, number: int) -> dict[str, object]:
        arguments = dict(call.arguments)
        function = {
            "name": call.name,
            "arguments": json.dumps(arguments, ensure_ascii=False) if self.arguments == "text" else arguments,
        }
        if self.flat:
            return {"id": self._id(call.name, number), **function}
        return {"id": self._id(call.name, number), "type": "function", "function": function}

    def _id(self, name: str, number: int) -> str:
        return f"{SERVER_ID}{number:05}" if self.ids == "nine" else f"functions.{name}:{number}"

    def _result(self, written: Sequence[Mapping[str, object]], turn: Turn) -> dict[str, object]:
        calls = [call for message in written for call in calls_of(message)]
        identifier, name = calls[-1] if calls else (self._id("", 0), "")
        content: Any = [{"type": "text", "text": turn.text}] if self.parts else turn.text
        return {"role": "tool", "tool_call_id": identifier, "name": name, "content": content}


def calls_of(message: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return id and name of each call in a message of any style."""
    calls: Any = message.get("tool_calls", ())
    return [(call["id"], call.get("function", call)["name"]) for call in calls]


STYLES: tuple[CaseStyle, ...] = (
    CaseStyle(),
    CaseStyle(ids="functions"),
    CaseStyle(arguments="text"),
    CaseStyle(arguments="text", ids="functions"),
    CaseStyle(empty="null"),
    CaseStyle(empty="absent"),
    CaseStyle(arguments="text", empty="null"),
    CaseStyle(arguments="text", empty="absent"),
    CaseStyle(parts=True),
    CaseStyle(parts=True, arguments="text"),
    CaseStyle(tail="tool"),
    CaseStyle(tail="tool", arguments="text"),
    CaseStyle(tail="user"),
    CaseStyle(system=True),
    CaseStyle(system=True, arguments="text"),
    CaseStyle(flat=True),
    CaseStyle(flat=True, arguments="text"),
)


def tools_for(calls: Sequence[SampleCall]) -> tuple[Tool, ...]:
    """Return the tools offered for these calls."""
    return (*TOOLS, CLEAR) if any(c.name == CLEAR["function"]["name"] for c in calls) else TOOLS
