"""Generated conversations: a nonce in every field of a request, and the marks to look for in its prompt.

Nonces are words that stand nowhere else, and texts with everything that templates are known to alter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.chat_template.cases import CaseStyle, Turn, calls_of
from importer.chat_template.request_coverage.findings import CoverageField
from importer.chat_template.samples import SampleCall, Tool
from importer.frozen import frozen

LETTERS = b"abcdefghijkmnpqrstuvwxyz"
LETTER_OF = bytes(LETTERS[byte % len(LETTERS)] for byte in range(256))
NAMED = "_7"  # the end of each name
# Between two nonces: markup, quotes, every end at which a text may be cut, odd numbers and letters.
ODD = (
    ' <b>5 < 6 & "seven" it\'s: one, two; three? Four! Five. Six\n'
    "next line, 10,000.50 Zürich 東京 🙂\n\nNext paragraph. "
)
SHORT_ODD = ' <i>5 < 6 & "seven" it\'s Zürich 東京 '  # for a value of one line


def nonce(place: str) -> str:
    """Return a word of ten letters in mixed case, the same for the same place every day."""
    word = hashlib.sha256(place.encode()).digest()[:10].translate(LETTER_OF).decode()
    # Capitals inside show a change of case; a small first letter keeps the word a plain identifier.
    return word[:2] + word[2].upper() + word[3:5] + word[5].upper() + word[6:8] + word[8].upper() + word[9]


def nonce_name(place: str) -> str:
    """Return a name that every engine accepts for a function or a parameter."""
    return nonce(place) + NAMED


def nonce_text(place: str, odd: str = ODD) -> str:
    """Return a text that begins and ends with nonces of its own, and odd characters between them."""
    return f"{nonce(place)}{odd}{nonce(place + ' end')}"


def nonce_ends(place: str) -> tuple[str, str]:
    """Return the first and the last word of ``text(place)``."""
    return nonce(place), nonce(place + " end")


def nonce_number(place: str) -> int:
    """Return a negative number of seven digits."""
    return -(1_000_003 + int.from_bytes(hashlib.sha256(place.encode()).digest()[:3]) % 8_000_000)


PAIRS = 10  # of a question and an answer: twenty turns


@frozen
class Mark:
    """A nonce to look for.

    ``text``     as it was sent; ``ends`` its first and last word, the same word for a name.
    ``number``   of the turn with that role, or of the tool, from 1.
    ``ordered``  whether it must stand behind the ordered marks before it; ``once`` whether only once.
    ``parent``   the text of the mark that holds it: a lost tool is one finding, not one for each parameter.
    """

    field: CoverageField
    number: int
    text: str
    ends: tuple[str, str]
    ordered: bool = False
    once: bool = False
    parent: str = ""

    @property
    def whole(self) -> bool:
        """Return whether the text is one word."""
        return self.ends[0] == self.ends[1] == self.text


@frozen
class Conversation:
    """Turns with tools on offer, and the marks of both; ``offered`` are names of tools."""

    name: str
    turns: tuple[Turn, ...]
    marks: tuple[Mark, ...]
    tools: tuple[Tool, ...] | None = None
    offered: tuple[str, ...] = ()

    def messages(self, style: CaseStyle) -> list[dict[str, object]]:
        """Return OpenAI messages in the form that the template requires."""
        if style.system and str(self.turns[0].role) in ("system", "developer"):
            style = replace(style, system=False)
        return linked(style.messages(self.turns))


def linked(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the messages with each result under the id and the name of its own call, in their order."""
    calls: list[tuple[str, str]] = []
    for message in messages:
        if message["role"] == "assistant":
            calls = calls_of(message)
        elif message["role"] == "tool" and calls:
            message["tool_call_id"], message["name"] = calls.pop(0)
    return messages


def _text(field: CoverageField, number: int, odd: str = ODD) -> Mark:
    place = f"{field} {number}"
    return Mark(field, number, nonce_text(place, odd), nonce_ends(place), ordered=True, once=True)


def _name(field: CoverageField, number: int) -> Mark:
    word = nonce_name(f"{field} {number}")
    return Mark(field, number, word, (word, word))


USERS = tuple(_text(CoverageField.USER, n) for n in range(1, PAIRS + 2))
ANSWERS = tuple(_text(CoverageField.ANSWER, n) for n in range(1, PAIRS + 1))
# The place of the first system turn is the template's own choice: Mistral's stands in the last question.
SYSTEM = replace(_text(CoverageField.SYSTEM, 1), ordered=False)
SECOND_SYSTEM = replace(_text(CoverageField.SECOND_SYSTEM, 2), ordered=False)
DEVELOPER = replace(_text(CoverageField.DEVELOPER, 1), ordered=False)
LATER_SYSTEM = _text(CoverageField.LATER_SYSTEM, 2)
NARRATION = replace(_text(CoverageField.WORDS_BESIDE_CALL, 1), ordered=False)
REASONING = replace(_text(CoverageField.REASONING, 1), ordered=False, once=False)
RESULTS = tuple(_text(CoverageField.RESULT, n) for n in range(1, 4))


def _inside(parent: Mark, field: CoverageField, place: int) -> Mark:
    """Return a name inside of ``parent``, of the same tool or call."""
    return replace(_name(field, place), number=parent.number, parent=parent.text)


def _about(parent: Mark, field: CoverageField, place: int, odd: str = ODD) -> Mark:
    """Return the description of ``parent``."""
    mark = _text(field, place, odd)
    return replace(mark, number=parent.number, parent=parent.text, ordered=False, once=False)


_TOOLS = tuple(_name(CoverageField.TOOL_NAME, n) for n in range(1, 5))
_ABOUT = tuple(_about(tool, CoverageField.TOOL_DESCRIPTION, n) for n, tool in enumerate(_TOOLS))
# The tools of the parameters, by their places in ``_TOOLS``: three of the first, two of the second …
_PARAMETERS = tuple(
    _inside(_TOOLS[tool], CoverageField.PARAMETER, n) for n, tool in enumerate((0, 0, 0, 1, 1, 3, 3))
)
_MEANT = tuple(_about(p, CoverageField.PARAMETER_DESCRIPTION, n) for n, p in enumerate(_PARAMETERS))
_CHOICES = (
    *(_inside(_PARAMETERS[1], CoverageField.ENUM, n) for n in range(2)),
    _about(_PARAMETERS[1], CoverageField.ENUM, 2, SHORT_ODD),
)
_NESTED = tuple(_inside(_PARAMETERS[5 + (n > 1)], CoverageField.NESTED_PARAMETER, n) for n in range(3))
_NESTED_MEANT = tuple(_about(n, CoverageField.NESTED_DESCRIPTION, i) for i, n in enumerate(_NESTED))


def _tool(number: int, properties: Mapping[str, object], required: Sequence[str]) -> Tool:
    parameters = {"type": "object", "properties": dict(properties), "required": list(required)}
    name, about = _TOOLS[number].text, _ABOUT[number].text
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


def _schema(kind: str, meant: Mark, **more: Any) -> dict[str, object]:
    return {"type": kind, "description": meant.text, **more}


def tools(*, counted: str = "integer", optional: bool = True) -> tuple[Tool, ...]:
    """Return three tools; ``counted`` is the type of one parameter, ``optional`` whether another is."""
    p = [mark.text for mark in _PARAMETERS]
    first = {
        p[0]: _schema("string", _MEANT[0]),
        p[1]: _schema("string", _MEANT[1], enum=[mark.text for mark in _CHOICES]),
        p[2]: _schema(counted, _MEANT[2]),
    }
    return (
        _tool(0, first, [p[0]] if optional else [p[0], p[2]]),
        _tool(1, {p[3]: _schema("string", _MEANT[3]), p[4]: _schema("boolean", _MEANT[4])}, [p[3]]),
        _tool(2, {}, []),
    )


def nested_tool() -> Tool:
    """Return a tool with an object of properties, one inside the other, and a list of objects."""
    p, n = [mark.text for mark in _PARAMETERS[5:]], [mark.text for mark in _NESTED]
    inner = _schema("object", _NESTED_MEANT[0], properties={n[1]: _schema("string", _NESTED_MEANT[1])})
    item = {"type": "object", "properties": {n[2]: _schema("string", _NESTED_MEANT[2])}}
    properties = {
        p[0]: _schema("object", _MEANT[5], properties={n[0]: inner}),
        p[1]: _schema("array", _MEANT[6], items=item),
    }
    return _tool(3, properties, [p[0]])


FLAT = (*_TOOLS[:3], *_ABOUT[:3], *_PARAMETERS[:5], *_MEANT[:5], *_CHOICES)
DEEP = (_TOOLS[3], _ABOUT[3], *_PARAMETERS[5:], *_MEANT[5:], *_NESTED, *_NESTED_MEANT)
NAMES = tuple(mark.text for mark in _TOOLS)


# On offer beside calls of other names, so that the names of a call stand in no description.
_OFFERED = nonce_name("offered")
OFFERED: tuple[Tool, ...] = (
    {
        "type": "function",
        "function": {
            "name": _OFFERED,
            "description": "Report something.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "The city."}},
                "required": ["city"],
            },
        },
    },
)


def _call(number: int) -> tuple[SampleCall, tuple[Mark, ...]]:
    """Return a call with marks for its name, the names of its arguments, and their values."""
    called = replace(_name(CoverageField.CALL, number), ordered=True)
    names = [_inside(called, CoverageField.ARGUMENT_NAME, 4 * number + i) for i in range(4)]
    argument = _about(called, CoverageField.ARGUMENT, number)
    nested = _about(called, CoverageField.NESTED_ARGUMENT, number)
    counts = [nonce_number(f"count {number}"), nonce_number(f"ratio {number}") + 0.25]
    arguments = {
        names[0].text: argument.text,
        names[1].text: {names[2].text: nested.text, "count": counts[0]},
        names[3].text: [counts[1], "x"],
    }
    numbers = [
        Mark(CoverageField.NUMBER, number, str(c), (str(c), str(c)), parent=called.text) for c in counts
    ]
    return SampleCall(called.text, arguments), (called, *names, argument, nested, *numbers)


CALLS = tuple(_call(n) for n in range(1, 4))
BARE_CALL = replace(_name(CoverageField.CALL, 4), number=1)  # without arguments


def said(role: Any, mark: Mark) -> Turn:
    """Return a turn with the text of a mark."""
    return Turn(role, mark.text)


def _calling(*numbers: int, narration: Mark | None = None, reasoning: str = "") -> Turn:
    calls = tuple(CALLS[n - 1][0] for n in numbers)
    return Turn("assistant", "" if narration is None else narration.text, calls, reasoning)


def _marks_of(*numbers: int) -> tuple[Mark, ...]:
    return tuple(mark for n in numbers for mark in CALLS[n - 1][1])


def plain() -> tuple[Conversation, ...]:
    """Return the conversations without tools."""
    first, second = USERS[0], USERS[1]
    turns = [t for u, a in zip(USERS, ANSWERS, strict=False) for t in (("user", u), ("assistant", a))]
    later = (first, ANSWERS[0], LATER_SYSTEM, second)
    return (
        Conversation("bare", (said("user", first),), (first,)),
        Conversation("system", (said("system", SYSTEM), said("user", first)), (SYSTEM, first)),
        Conversation(
            "two-systems",
            (said("system", SYSTEM), said("system", SECOND_SYSTEM), said("user", first)),
            (replace(SYSTEM, field=CoverageField.SECOND_SYSTEM), SECOND_SYSTEM, first),
        ),
        Conversation("developer", (said("developer", DEVELOPER), said("user", first)), (DEVELOPER, first)),
        Conversation(
            "twenty-turns",
            (*(said(role, mark) for role, mark in turns), said("user", USERS[PAIRS])),
            (*(mark for _, mark in turns), USERS[PAIRS]),
        ),
        Conversation(
            "later-system",
            tuple(map(said, ("user", "assistant", "system", "user"), later)),
            later,
        ),
    )  # fmt: skip


def offering() -> tuple[Conversation, ...]:
    """Return the conversations with tools on offer and no call."""
    ask, flat = said("user", USERS[0]), tools()
    return (
        Conversation("tools", (ask,), (USERS[0], *FLAT), flat, NAMES[:3]),
        Conversation(
            "tools-and-system", (said("system", SYSTEM), ask), (SYSTEM, USERS[0], *FLAT), flat, NAMES[:3]
        ),
        Conversation("nested-tool", (ask,), DEEP, (nested_tool(),), NAMES[3:]),
    )


def calling(thinks: bool) -> tuple[Conversation, ...]:
    """Return the conversations with calls and results; ``thinks`` adds one with reasoning."""
    ask, again = USERS[0], USERS[1]
    result = [said("tool", mark) for mark in RESULTS]

    def made(name: str, turns: Sequence[Turn], *marks: Mark) -> Conversation:
        return Conversation(name, (said("user", ask), *turns), (ask, *marks), OFFERED, (_OFFERED,))

    reasoned = _calling(1, reasoning=REASONING.text)
    both = _calling(1, narration=NARRATION, reasoning=REASONING.text)
    empty = Turn("assistant", "", (SampleCall(BARE_CALL.text, {}),))
    return (
        made("call", [_calling(1), result[0]], *_marks_of(1), RESULTS[0]),
        made("words-beside-call", [_calling(1, narration=NARRATION), result[0]], NARRATION),
        made("no-arguments", [empty, result[0]], BARE_CALL, RESULTS[0]),
        made("two-calls", [_calling(1, 2), *result[:2]], *_marks_of(1, 2), *RESULTS[:2]),
        made(
            "several-rounds",
            [
                _calling(1), result[0], _calling(2), result[1], said("assistant", ANSWERS[0]),
                said("user", again), _calling(3), result[2], said("assistant", ANSWERS[1]),
                said("user", USERS[2]),
            ],
            *_marks_of(1), RESULTS[0], *_marks_of(2), RESULTS[1], ANSWERS[0], again, *_marks_of(3),
            RESULTS[2], ANSWERS[1], USERS[2],
        ),
        *([made("reasoning", [reasoned, result[0]], REASONING)] if thinks else []),
        *([made("reasoning-and-words", [both, result[0]], REASONING, NARRATION)] if thinks else []),
    )  # fmt: skip


def images(count: int, style: CaseStyle) -> Sequence[Mapping[str, object]]:
    """Return one question with a text and ``count`` images."""
    parts = [{"type": "text", "text": USERS[0].text}, *({"type": "image"} for _ in range(count))]
    lead = [{"role": "system", "content": "You are a helpful assistant."}] if style.system else []
    return [*lead, {"role": "user", "content": parts}]
