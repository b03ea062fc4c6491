"""Conversations of shapes: a nonce in each place, and the marks to look for in the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from importer.chat_template.cases import CaseStyle, Turn
from importer.chat_template.request_coverage import nonces
from importer.chat_template.request_coverage.conversations import Conversation, Mark
from importer.chat_template.request_coverage.findings import WayInField
from importer.chat_template.request_coverage.traits import Shape, Trait, special
from importer.chat_template.samples import Function, SampleCall, Tool
from importer.frozen import frozen

HUNDREDS = 130  # pairs of turns: 260 and a question
# What a property's schema is, by trait; ``None`` for the plain one.
INNER, CHOICE = nonces.name("shape inner"), nonces.name("shape choice")
SCHEMAS: Mapping[Trait, Mapping[str, object]] = {
    Trait.NESTED: {"type": "object", "properties": {INNER: {"type": "string"}}},
    Trait.CHOICES: {"type": "string", "enum": [CHOICE, "other"]},
    Trait.DEFAULTS: {"type": ["integer", "null"], "default": None, "minimum": 0},
}
INSIDE: Mapping[Trait, tuple[WayInField, str]] = {
    Trait.NESTED: (WayInField.NESTED_PARAMETER, INNER),
    Trait.CHOICES: (WayInField.ENUM, CHOICE),
}


def name_of(shape: Shape) -> str:
    """Return the name of a shape's conversation: the traits that are not the simplest ones."""
    return "+".join(special(shape)) or "simplest"


@cache
def mark(field: WayInField, number: int, *, ordered: bool = False, parent: str = "") -> Mark:
    """Return a mark of one word."""
    word = nonces.name(f"shape {field} {number}")
    return Mark(field, number, word, (word, word), ordered=ordered, parent=parent)


@dataclass(slots=True)
class _Builder:
    """Turns and marks of a shape, one after the other."""

    shape: Shape
    turns: list[Turn] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    results: int = 0
    calls: int = 0

    def say(self, role: Any, place: WayInField, number: int) -> None:
        """Add a turn of plain text; the place of a system turn is the template's own choice."""
        ordered = place not in (WayInField.SYSTEM, WayInField.DEVELOPER)
        said = mark(place, number, ordered=ordered)
        thinks = role == "assistant" and Trait.REASONING in self.shape
        self.turns.append(Turn(role, said.text, reasoning=nonces.name("past thought") if thinks else ""))
        self.marks.append(said)

    def call(self, count: int = 1, *, distance: int = 0) -> None:
        """Add calls and their results; ``distance`` from the end numbers words and reasoning beside them."""
        words = mark(WayInField.WORDS_BESIDE_CALL, distance)
        thought = mark(WayInField.REASONING, distance)
        made = [self._call() for _ in range(count)]
        beside, thinks = Trait.WORDS_BESIDE_CALLS in self.shape, Trait.REASONING in self.shape
        reasoning = "" if not thinks else thought.text if distance else nonces.name("past thought")
        self.turns.append(Turn("assistant", words.text if beside else "", tuple(made), reasoning))
        self.marks += [words] * beside + [thought] * (thinks and distance > 0)
        for _ in range(count):
            self.results += 1
            self.say("tool", WayInField.RESULT, self.results)

    def _call(self) -> SampleCall:
        self.calls += 1
        called = mark(WayInField.CALL, self.calls, ordered=True)
        self.marks.append(called)
        if Trait.NO_ARGUMENTS in self.shape:
            return SampleCall(called.text, {})
        name = mark(WayInField.ARGUMENT_NAME, self.calls, parent=called.text)
        value = mark(WayInField.ARGUMENT, self.calls, parent=called.text)
        self.marks += [name, value]
        return SampleCall(called.text, {name.text: value.text})


@frozen
class Shaped(Conversation):
    """A conversation with the traits of a shape."""

    shape: Shape = ()

    def messages(self, style: CaseStyle) -> list[dict[str, object]]:
        """Return OpenAI messages in the form that the template requires, with the keys of the shape."""
        messages = Conversation.messages(self, style)
        for message in messages:
            role = str(message["role"])
            if role == "system" and Trait.DEVELOPER in self.shape and self.turns[0].role == "system":
                message["role"] = "developer"
            if role == "tool" and Trait.RESULTS_UNNAMED in self.shape:
                del message["name"]
            elif role != "tool" and Trait.NAMES in self.shape:
                message["name"] = speaker(role)
        return messages


def speaker(role: str) -> str:
    """Return the name of who speaks with a role."""
    return nonces.name(f"speaker {role}")


def conversation(shape: Shape) -> Shaped:
    """Return the conversation of a shape."""
    made = _Builder(shape)
    if Trait.SYSTEM in shape or Trait.DEVELOPER in shape:
        place = WayInField.SYSTEM if Trait.SYSTEM in shape else WayInField.DEVELOPER
        made.say("system", place, 1)
    asked = 1
    for asked in _earlier(made):
        made.say("user", WayInField.USER, asked)
        if Trait.EARLIER_CALLS in shape:
            made.call()
        made.say("assistant", WayInField.ANSWER, asked)
    made.say("user", WayInField.USER, asked + 1)
    rounds = {
        Trait.RESULT_LAST: 1,
        Trait.TWO_CALLS: 1,
        Trait.TWO_ROUNDS: 2,
        Trait.HUNDREDS_OF_CALLS: HUNDREDS,
    }
    for distance in range(next((rounds[t] for t in shape if t in rounds), 0), 0, -1):
        made.call(2 if Trait.TWO_CALLS in shape else 1, distance=distance)
    tools = _tools(shape) if Trait.TOOLS in shape else None
    offered = tuple(tool["function"]["name"] for tool in tools or ())
    marks = (*(_tool_marks(shape) if tools else ()), *made.marks)
    return Shaped(name_of(shape), tuple(made.turns), marks, tools, offered, shape)


def _earlier(made: _Builder) -> Sequence[int]:
    if Trait.HUNDREDS_OF_TURNS in made.shape:
        return range(1, HUNDREDS + 1)
    return range(1, 2 if Trait.FIRST_TURN not in made.shape else 1)


def _tools(shape: Shape) -> tuple[Tool, ...]:
    """Return a plain tool, and one with the traits of the shape."""
    plain = _function(1) | {"parameters": _parameters(1, {"type": "string", "description": "A key."})}
    other = _function(2)
    schema = next((SCHEMAS[trait] for trait in shape if trait in SCHEMAS), {"type": "string"})
    parameters: Any = _parameters(2, schema)
    if Trait.NO_REQUIRED in shape:
        del parameters["required"]
    if Trait.NO_PROPERTIES in shape:
        parameters = {"type": "object"}
    if Trait.NO_PARAMETERS not in shape:
        other["parameters"] = None if Trait.NULL_PARAMETERS in shape else parameters
    if Trait.NO_DESCRIPTION in shape:
        del other["description"]
    elif Trait.NULL_DESCRIPTION in shape:
        other["description"] = None
    return tuple(Tool(type="function", function=cast(Function, one)) for one in (plain, other))


def _function(number: int) -> dict[str, object]:
    name, about = (mark(place, number).text for place in (WayInField.TOOL_NAME, WayInField.TOOL_DESCRIPTION))
    return {"name": name, "description": about}


def _parameters(number: int, schema: Mapping[str, object]) -> dict[str, object]:
    name = mark(WayInField.PARAMETER, number).text
    return {"type": "object", "properties": {name: dict(schema)}, "required": [name]}


def _tool_marks(shape: Shape) -> Iterator[Mark]:
    absent = {Trait.NO_PARAMETERS, Trait.NULL_PARAMETERS, Trait.NO_PROPERTIES} & set(shape)
    for number in (1, 2):
        tool = mark(WayInField.TOOL_NAME, number)
        yield tool
        if number == 1 or Trait.DESCRIBED in shape:
            yield mark(WayInField.TOOL_DESCRIPTION, number, parent=tool.text)
        if number == 1 or not absent:
            yield mark(WayInField.PARAMETER, number, parent=tool.text)
    for place, word in (INSIDE[trait] for trait in shape if trait in INSIDE):
        yield Mark(place, 2, word, (word, word), parent=tool.text)
