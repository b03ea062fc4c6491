"""Parameters of tools with schemas as agents and MCP servers send them, beyond one plain type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from importer.chat_template.request_coverage import nonces
from importer.chat_template.request_coverage.conversations import USERS, Conversation, said
from importer.chat_template.request_coverage.findings import WayInField, WayInFinding, WayInKind
from importer.chat_template.samples import Function, Tool
from importer.frozen import frozen

ROOM = 400  # characters behind the last name
PLAIN = "string"
NULL = "null"


@frozen
class Case:
    """A parameter with a schema.

    ``words``  nonces that the prompt must hold.
    ``types``  types that must stand behind the parameter's name, where a plain type does.
    ``defs``   of the schema around the parameter.
    """

    schema: Mapping[str, Any]
    words: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    defs: Mapping[str, Any] | None = None


_INNER, _CONST, _ITEM = (nonces.name(f"schema {what}") for what in ("inner", "const", "item"))
_NUMBERS = [nonces.number("schema one"), nonces.number("schema two")]
_OBJECT = {"type": "object", "properties": {_INNER: {"type": PLAIN}}, "required": [_INNER]}
CASES: Mapping[WayInField, Case] = {
    WayInField.TYPE_LIST: Case({"type": ["boolean", NULL]}, types=("boolean", NULL)),
    WayInField.ANY_OF: Case({"anyOf": [{"type": "boolean"}, {"type": NULL}]}, types=("boolean", NULL)),
    WayInField.REFERENCE: Case({"$ref": "#/$defs/Inner"}, (_INNER,), defs={"Inner": _OBJECT}),
    WayInField.CONST: Case({"type": PLAIN, "const": _CONST}, (_CONST,)),
    WayInField.NUMBER_ENUM: Case({"type": "integer", "enum": _NUMBERS}, tuple(map(str, _NUMBERS))),
    WayInField.UNTYPED: Case({}),
    WayInField.ITEM_ENUM: Case({"type": "array", "items": {"type": PLAIN, "enum": [_ITEM, "x"]}}, (_ITEM,)),
}


def conversations() -> tuple[Conversation, ...]:
    """Return one conversation with a tool for each schema."""
    return tuple(Conversation(place, (said("user", USERS[0]),), (), (_tool(place),)) for place in CASES)


def _names(place: WayInField) -> tuple[str, str, str, str]:
    """Return the names of the tool, of its parameter and of a plain one, and the parameter's description."""
    tool, own, plain, meant = (
        nonces.name(f"schema {place} {what}") for what in ("tool", "of", "plain", "meant")
    )
    return tool, own, plain, meant


def _tool(place: WayInField) -> Tool:
    case, (tool, own, plain, meant) = CASES[place], _names(place)
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {own: {**case.schema, "description": meant}, plain: {"type": PLAIN}},
        "required": [own],
    }
    if case.defs is not None:
        parameters["$defs"] = dict(case.defs)
    function: Function = {"name": tool, "description": "Look something up.", "parameters": parameters}
    return {"type": "function", "function": function}


def compare(place: WayInField, prompt: str) -> Iterator[WayInFinding]:
    """Yield what the prompt does to the parameter of a schema."""
    case, (_, own, plain, meant) = CASES[place], _names(place)
    if plain not in prompt:
        return  # plain parameters have the finding
    if any(word not in prompt for word in (own, meant, *case.words)):
        yield WayInFinding(WayInKind.LOST, place, (1,), place)
    elif any(PLAIN in text for text in _behind(plain, own, prompt)):
        texts = [*_behind(own, plain, prompt)]
        if not any(all(word in text for word in case.types) for text in texts):
            yield WayInFinding(WayInKind.LOST, place, (1,), place)
        elif case.types and _as_python(case.types[0], "".join(texts)):
            yield WayInFinding(WayInKind.REPR, place, (1,), place)


def _behind(name: str, other: str, prompt: str) -> Iterator[str]:
    """Yield the text behind each place of a name, up to the other name, in small letters."""
    for found in re.finditer(re.escape(name), prompt):
        yield prompt[found.end() : found.end() + ROOM].partition(other)[0].lower()


def _as_python(word: str, text: str) -> bool:
    """Return whether a list of words is printed as Python prints it, and no object around it."""
    return f"['{word}'" in text and "'type'" not in text
