"""The types of a document's data have the keys and the types of its schema."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from importer.config_file import schema
from importer.config_file.document import (
    Block,
    Document,
    Engine,
    NamedTemplate,
    Parameters,
    Setting,
    Template,
)

PART = schema.load("document")["properties"]
BLOCK = PART["importer"]["properties"]
NAMES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
TYPED = {"type", "enum", "const"}  # LocalAI's own keys have none of them
# A type of a key, with the part of the schema that has its keys.
SIDES: dict[type, Mapping[str, Any]] = {
    Document: PART,
    Parameters: PART["parameters"]["properties"],
    Template: schema.load("document")["$defs"]["template"]["properties"],
    Block: BLOCK,
    Engine: BLOCK["engine"]["properties"],
    NamedTemplate: BLOCK["chat_template"]["properties"],
}


def accepted(rule: Mapping[str, Any]) -> set[type]:
    """Return the types of Python that a rule of the schema accepts."""
    if "const" in rule or "enum" in rule:
        return {type(value) for value in rule.get("enum", [rule.get("const")])}
    names = rule["type"]
    return {NAMES.get(name, type(None)) for name in ([names] if isinstance(names, str) else names)}


def declared(hint: Any) -> Iterator[type]:
    """Yield the types of Python that an annotation allows."""
    if get_origin(hint) in (types.UnionType, Union):
        for one in get_args(hint):
            yield from declared(one)
    elif is_typeddict(hint) or get_origin(hint) is Mapping:
        yield dict
    else:
        yield list if get_origin(hint) is Sequence else hint


def test_every_key_that_the_schema_types_is_declared_with_its_type() -> None:
    for declaration, rules in SIDES.items():
        hints = get_type_hints(declaration, {"Setting": Setting})
        typed = {
            key for key, rule in rules.items() if rule is not True and {"type", "enum", "const"} & {*rule}
        }
        assert {*hints} == typed, declaration
        for key, hint in hints.items():
            assert {*declared(hint)} == accepted(rules[key]), f"{declaration.__name__}.{key}"
