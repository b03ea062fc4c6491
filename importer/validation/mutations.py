"""What servers and gateways are known to do to requests and answers, so that a remedy names it."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from importer.chat_template.samples import Tool
from importer.reasons import Reason, ReasonKind
from importer.validation.prompts import Call, Message, Prompt
from importer.validation.reply import Reply, loaded

TAG = re.compile(r"<[^<>]+>")


class Alteration(ReasonKind):
    """One change of a request on its way to the template; one of a text (``part``) is of answers, too."""

    SYSTEM_DROPPED = "the system's turn is left out"
    SYSTEM_MERGED = "the system's turn becomes a part of the first question"
    SYSTEM_AS_USER = "the system's turn becomes one of the user"
    ANSWERS_AS_USER = "earlier answers become turns of the user"
    TURNS_DROPPED = "all turns but the last are left out"
    TOOLS_DROPPED = "tools are left out"
    DESCRIPTIONS_DROPPED = "descriptions of tools are left out"
    KEYWORDS_DROPPED = "{keywords:and} of schemas are left out"
    KEYS_SORTED = "keys of schemas are sorted"
    SWITCHES_DROPPED = "variables of the template are left out"
    NON_ASCII_DROPPED = "letters beyond ASCII in the {part} are left out"
    NON_ASCII_REPLACED = "letters beyond ASCII in the {part} become question marks"
    ACCENTS_DROPPED = "letters in the {part} lose their accents"
    LATIN_1 = "UTF-8 in the {part} is read as Latin-1"
    TAGS_DROPPED = "markup in the {part} is left out"
    HTML_ESCAPED = "escapes of web pages are put into the {part}"
    HTML_UNESCAPED = "escapes of web pages in the {part} are undone"
    SPACES_COLLAPSED = "white space in the {part} is collapsed"
    STRIPPED = "white space at the edges of the {part} is left out"
    LOWERED = "capitals in the {part} become small letters"
    NO_TEMPLATE = "the words are sent alone, without the chat template of the model"


Change = Callable[[Prompt], Prompt | str]
Scope = Callable[[Callable[[str], str]], Callable[[Prompt], Prompt]]


def _of_texts(change: Callable[[str], str]) -> Callable[[Prompt], Prompt]:
    """Return the change of each text in the messages; names, roles and tools stay."""

    def of_call(call: Call) -> Call:
        arguments = json.loads(call["function"]["arguments"])
        changed = {k: change(v) if isinstance(v, str) else v for k, v in arguments.items()}
        text = json.dumps(changed, ensure_ascii=False)
        return {**call, "function": {**call["function"], "arguments": text}}

    def of_turn(turn: Message, *, calls: bool) -> Message:
        changed: Message = {**turn, "content": change(turn.get("content") or "")}
        if calls and turn.get("tool_calls"):
            changed["tool_calls"] = [of_call(call) for call in turn["tool_calls"]]
        return changed

    return lambda p: replace(p, messages=tuple(of_turn(m, calls=True) for m in p.messages))


def _of_all_texts(change: Callable[[str], str]) -> Callable[[Prompt], Prompt]:
    """Return the change of each text in the messages, and in the descriptions of tools."""

    def deep(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {k: deep(v, k) for k, v in value.items()}
        return change(value) if isinstance(value, str) and key == "description" else value

    return lambda p: replace(_of_texts(change)(p), tools=tuple(deep(tool) for tool in p.tools))


def _without(role: str) -> Change:
    return lambda p: replace(p, messages=tuple(m for m in p.messages if m["role"] != role))


def _merged(between: str) -> Change:
    """Return the change that puts the words of the system before those of the first question."""

    def change(prompt: Prompt) -> Prompt:
        first, *rest = prompt.messages
        if first["role"] != "system" or not rest or rest[0]["role"] != "user":
            return prompt
        joined: Message = {"role": "user", "content": f"{first['content']}{between}{rest[0]['content']}"}
        return replace(prompt, messages=(joined, *rest[1:]))

    return change


def _as_user(role: str) -> Change:
    def change(prompt: Prompt) -> Prompt:
        turns: Iterator[Message] = (
            {**m, "role": "user"} if m["role"] == role and not m.get("tool_calls") else m
            for m in prompt.messages
        )
        return replace(prompt, messages=tuple(turns))

    return change


def _last_turn(prompt: Prompt) -> Prompt:
    return replace(prompt, messages=prompt.messages[-1:])


def _undescribed(prompt: Prompt) -> Prompt:
    def tool(one: Tool) -> Any:  # a tool needs no description
        return {**one, "function": {k: v for k, v in one["function"].items() if k != "description"}}

    return replace(prompt, tools=tuple(tool(one) for one in prompt.tools))


def _without_keywords(*keywords: str) -> Change:
    """Return the change that takes these keywords out of each schema; a property may have such a name."""

    def deep(value: Any, *, names: bool = False) -> Any:
        if isinstance(value, list):
            return [deep(one) for one in value]
        if not isinstance(value, Mapping):
            return value
        kept = {k: v for k, v in value.items() if names or k not in keywords}
        return {k: deep(v, names=not names and k in ("properties", "$defs")) for k, v in kept.items()}

    def tool(one: Tool) -> Any:
        function: Any = one["function"]
        return {**one, "function": {**function, "parameters": deep(function.get("parameters"))}}

    return lambda p: replace(p, tools=tuple(tool(one) for one in p.tools))


def _sorted(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_sorted(one) for one in value]
    return {k: _sorted(value[k]) for k in sorted(value)} if isinstance(value, Mapping) else value


def _sorted_schemas(prompt: Prompt) -> Prompt:
    """Return the prompt with the keys of each tool's schema in order, as writers of JSON sort them."""
    tools: Any = ({**t, "function": {**t["function"], "parameters": _sorted(t["function"].get("parameters"))}}
                  for t in prompt.tools)  # fmt: skip
    return replace(prompt, tools=tuple(tools))


# Keywords of schemas that servers drop: one of them, or all for which a gateway has no place.
KEYWORDS = ("enum", "const", "minimum", "maximum", "items", "pattern", "default", "format", "anyOf")


def _alone(between: str, roles: str = "") -> Change:
    """Return the text of a conversation without a template."""

    def text(prompt: Prompt) -> str:
        turns = ((str(m["role"]), str(m.get("content") or "")) for m in prompt.messages)
        return between.join(f"{roles.format(role)}{content}" for role, content in turns)

    return text


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _untagged(text: str) -> str:
    return TAG.sub("", text)


SCOPES: tuple[Scope, ...] = (_of_texts, _of_all_texts)
TEXT_CHANGES: tuple[tuple[Alteration, Callable[[str], str]], ...] = (
    (Alteration.NON_ASCII_DROPPED, lambda t: t.encode("ascii", "ignore").decode()),
    (Alteration.NON_ASCII_REPLACED, lambda t: t.encode("ascii", "replace").decode()),
    (Alteration.ACCENTS_DROPPED, _folded),
    (Alteration.LATIN_1, lambda t: t.encode().decode("latin-1")),
    (Alteration.TAGS_DROPPED, _untagged),
    (Alteration.HTML_ESCAPED, html.escape),
    (Alteration.HTML_ESCAPED, lambda t: html.escape(t, quote=False)),
    (Alteration.HTML_UNESCAPED, html.unescape),
    (Alteration.SPACES_COLLAPSED, lambda t: " ".join(t.split())),
    (Alteration.SPACES_COLLAPSED, lambda t: re.sub(r"\s+", " ", t)),
    (Alteration.SPACES_COLLAPSED, lambda t: re.sub(r"[ \t]+", " ", t)),
    (Alteration.STRIPPED, str.strip),
    (Alteration.LOWERED, str.lower),
)
# In the order in which they are tried; several changes may be one alteration.
CHANGES: tuple[tuple[Reason, Change], ...] = (
    (Reason(Alteration.SYSTEM_DROPPED), _without("system")),
    *((Reason(Alteration.SYSTEM_MERGED), _merged(between)) for between in ("\n\n", "\n", " ")),
    (Reason(Alteration.SYSTEM_AS_USER), _as_user("system")),
    (Reason(Alteration.ANSWERS_AS_USER), _as_user("assistant")),
    (Reason(Alteration.TURNS_DROPPED), _last_turn),
    (Reason(Alteration.TOOLS_DROPPED), lambda p: replace(p, tools=())),
    (Reason(Alteration.DESCRIPTIONS_DROPPED), _undescribed),
    *(
        (Reason(Alteration.KEYWORDS_DROPPED, keywords=words), _without_keywords(*words))
        for words in (*((word,) for word in KEYWORDS), ("minimum", "maximum"), KEYWORDS)
    ),
    (Reason(Alteration.KEYS_SORTED), _sorted_schemas),
    (Reason(Alteration.KEYS_SORTED), lambda p: replace(p, tools=tuple(_sorted(p.tools)))),
    (Reason(Alteration.SWITCHES_DROPPED), lambda p: replace(p, switches={})),
    *((Reason(kind, part="messages"), scope(change)) for kind, change in TEXT_CHANGES for scope in SCOPES),
    *((Reason(Alteration.NO_TEMPLATE), _alone(between)) for between in ("\n", "\n\n", " ", "")),
    *((Reason(Alteration.NO_TEMPLATE), _alone(between, "{}: ")) for between in ("\n", "\n\n")),
)


class AnswerChange(ReasonKind):
    """One change of an answer on its way to the client; fields name the ``part`` of the answer."""

    THOUGHTS_LEFT_OUT = "thoughts are left out"
    THOUGHTS_IN_TEXT = "thoughts stand in the content"
    TEXT_IN_THOUGHTS = "the content stands among the thoughts"
    CALLS_LEFT_OUT = "calls are left out"
    CALLS_IN_TEXT = "calls stand in the content"
    CALLS_ADDED = "of {own} calls it makes {came}"
    OTHER_NAME = "for the tool {own!r} it names {came!r}"
    OTHER_ARGUMENTS = "for the arguments {own!r} it has {came!r}"
    OTHER_END = "for the finish_reason {own!r} it has {came!r}"
    PART_LEFT_OUT = "the {part} is left out"
    BEGUN_AGAIN = "the {part} begins again in the middle"
    REPEATED = "the {part} comes twice"
    PIECES_REPEATED = "pieces of the {part} come twice"
    ALL_IN_EACH_PIECE = "each piece of the {part} has all that came before it"
    END_LOST = "the end of the {part} is lost"
    BEGINNING_LOST = "the beginning of the {part} is lost"
    LETTERS_BROKEN = "letters of the {part} are broken"
    ESCAPED = "the {part} comes with escapes: {came!r}"
    SPACES_CHANGED = "white space in the {part} is changed"
    TEXT_ADDED = "something is added to the {part}: {came!r}"
    FIELD_RENAMED = "it writes {came} for the field {own}"
    WORDS_CHANGED = "the {part} has other words: {came!r} in place of {own!r}"


# What a server does that does not run its parser, or runs another one.
BY_PARSERS = frozenset({
    AnswerChange.THOUGHTS_IN_TEXT, AnswerChange.TEXT_IN_THOUGHTS, AnswerChange.CALLS_IN_TEXT,
    AnswerChange.CALLS_LEFT_OUT,
})  # fmt: skip
BROKEN = "\ufffd"  # for bytes that are no letter
PIECE = 64  # characters of a streamed piece at most
QUOTED = 60  # characters of a value in a reason
SEVERAL = 3  # pieces of a stream that show how it grows
FIELDS = ("content", "reasoning_content", "tool_calls", "finish_reason")
LONG = 8  # characters that make a text long enough to be seen again by no chance


def _begun_again(own: str, came: str) -> bool:
    """Return whether the text breaks off, and then stands there whole."""
    return came.endswith(own) and own.startswith(came.removesuffix(own)) and len(came) > len(own)


def _pieces_repeated(own: str, came: str) -> bool:
    """Return whether the text comes whole, and pieces of it once more behind themselves."""
    place, read = 0, 0
    while read < len(came):
        if own[place : place + 1] == came[read]:
            place, read = place + 1, read + 1
            continue
        lengths = range(min(place, PIECE), 0, -1)
        again = next((n for n in lengths if came.startswith(own[place - n : place], read)), 0)
        if not again:
            return False
        read += again
    return place == len(own)


# In this order; the first that makes the one text of the other is told.
Test = Callable[[str, str], bool]


def _makes(change: Callable[[str], str]) -> Test:
    return lambda own, came: own != came and change(own) == came


TEXTS: tuple[tuple[AnswerChange | Alteration, Test], ...] = (
    (AnswerChange.PART_LEFT_OUT, lambda _, came: not came),
    (AnswerChange.REPEATED, lambda own, came: came in (own * 2, f"{own} {own}", f"{own}\n{own}")),
    (AnswerChange.BEGUN_AGAIN, _begun_again),
    (AnswerChange.PIECES_REPEATED, _pieces_repeated),
    (AnswerChange.LETTERS_BROKEN, lambda own, came: BROKEN in came and BROKEN not in own),
    (AnswerChange.SPACES_CHANGED, lambda own, came: "".join(own.split()) == "".join(came.split())),
    *((kind, _makes(change)) for kind, change in TEXT_CHANGES if kind is not Alteration.TAGS_DROPPED),
    (AnswerChange.ESCAPED, lambda own, came: came in (json.dumps(own)[1:-1], repr(own)[1:-1])),
    (AnswerChange.END_LOST, lambda own, came: own.startswith(came)),
    (AnswerChange.BEGINNING_LOST, lambda own, came: own.endswith(came)),
    (Alteration.TAGS_DROPPED, _makes(_untagged)),
    (AnswerChange.TEXT_ADDED, lambda own, came: len(own) >= LONG and own in came),
)


def told(own: Reply, came: Reply) -> Reason | None:
    """Return the first change that makes of one answer the other; ``None`` where they are alike.

    ``own`` is what it should be. White space at the edges counts for nothing.
    """
    return next(_changes(own, came), None)


def _changes(own: Reply, came: Reply) -> Iterator[Reason]:
    yield from _renamed(came)
    moved = _moved(own, came)
    if moved is not None:
        yield Reason(moved)
    else:
        for part in ("reasoning", "content"):
            if own != came and _grows(came, part):
                yield Reason(AnswerChange.ALL_IN_EACH_PIECE, part=part)
            yield from _of_text(getattr(own, part).strip(), getattr(came, part).strip(), part)
    yield from _of_calls(own, came)
    if own.finish_reason != came.finish_reason:
        yield Reason(AnswerChange.OTHER_END, own=own.finish_reason, came=came.finish_reason)


def _renamed(came: Reply) -> Iterator[Reason]:
    """Yield fields whose names are written otherwise, as JavaScript does: clients do not find them."""
    for part in (*came.choices, *came.messages):
        for name in part:
            own = next((field for field in FIELDS if name != field and _bare(name) == _bare(field)), None)
            if own is not None and own not in part:
                yield Reason(AnswerChange.FIELD_RENAMED, own=own, came=name)


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _grows(came: Reply, part: str) -> bool:
    """Return whether each piece of a stream begins with all of the one before it."""
    texts = (each.get(part) for each in came.messages)
    pieces = [text for text in texts if isinstance(text, str) and text]
    longer = all(later.startswith(one) and later != one for one, later in pairwise(pieces))
    return len(pieces) >= SEVERAL and longer


def _moved(own: Reply, came: Reply) -> AnswerChange | None:
    """Return the part of an answer that is away, or stands in another one."""
    thought, text = own.reasoning.strip(), own.content.strip()
    if thought and not came.reasoning.strip():
        inside = thought in came.content and thought not in text
        return AnswerChange.THOUGHTS_IN_TEXT if inside else AnswerChange.THOUGHTS_LEFT_OUT
    if text and not came.content.strip() and text in came.reasoning:
        return AnswerChange.TEXT_IN_THOUGHTS
    if len(came.tool_calls) < len(own.tool_calls):
        lost = own.tool_calls[len(came.tool_calls)].name
        inside = lost in came.content and lost not in text
        return AnswerChange.CALLS_IN_TEXT if inside else AnswerChange.CALLS_LEFT_OUT
    return None


def of_text(own: str, came: str) -> AnswerChange | Alteration | None:
    """Return the known change that makes of one text the other, or ``None``."""
    return next((change for change, holds in TEXTS if own and holds(own, came)), None)


def _of_text(own: str, came: str, part: str) -> Iterator[Reason]:
    if own == came:
        return
    change = of_text(own, came)
    if change is None:
        change = AnswerChange.WORDS_CHANGED if own else AnswerChange.TEXT_ADDED
    yield Reason(change, part=part, own=own[:QUOTED], came=came[:QUOTED])


def _of_calls(own: Reply, came: Reply) -> Iterator[Reason]:
    if len(came.tool_calls) > len(own.tool_calls):
        yield Reason(AnswerChange.CALLS_ADDED, own=len(own.tool_calls), came=len(came.tool_calls))
    for one, other in zip(own.tool_calls, came.tool_calls, strict=False):
        if one.name != other.name:
            yield Reason(AnswerChange.OTHER_NAME, own=one.name, came=other.name)
        if loaded(one.arguments, one.arguments) != loaded(other.arguments, other.arguments):
            quoted = {"own": one.arguments[:QUOTED], "came": other.arguments[:QUOTED]}
            change = next((c for c, holds in TEXTS if holds(one.arguments, other.arguments)), None)
            if change is not None and other.arguments:
                yield Reason(change, part="JSON of arguments", **quoted)
            yield Reason(AnswerChange.OTHER_ARGUMENTS, **quoted)
