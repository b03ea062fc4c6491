"""The types of documents and receipts have the keys and the types of their schemas."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from importer.document import document, records, schema

DOCUMENT, RECEIPT = schema.load("document"), schema.load("receipt")
PART, OF_RECEIPT = DOCUMENT["properties"], RECEIPT["properties"]
BLOCK, REPORT = PART["importer"]["properties"], OF_RECEIPT["validation"]["properties"]
DECISION = RECEIPT["$defs"]["decision"]["properties"]
NAMES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
TYPED = {"type", "enum", "const"}  # LocalAI's own keys have none of them
# A declaration, with the part of a schema that has its keys.
SIDES: dict[type, Mapping[str, Any]] = {
    document.Document: PART, document.Parameters: PART["parameters"]["properties"],
    document.Template: DOCUMENT["$defs"]["template"]["properties"], document.Block: BLOCK,
    document.Engine: BLOCK["engine"]["properties"],
    document.NamedTemplate: BLOCK["chat_template"]["properties"], records.DecisionRecord: DECISION,
    records.Overruled: DECISION["overruled"]["items"]["properties"],
    records.Fact: RECEIPT["$defs"]["evidence"]["properties"],
    records.ReviewRecord: OF_RECEIPT["review"]["properties"],
    records.Report: REPORT,
    records.Partial: REPORT["partial"]["properties"], records.Carried: REPORT["carried"]["properties"],
    records.OutcomeRecord: REPORT["outcomes"]["items"]["properties"],
}  # fmt: skip
UNSAID = {"started"}  # of a report: the schema lets further keys pass


def accepted(rule: Any) -> set[Any]:
    """Return the types of Python that a rule of the schema accepts."""
    if rule is True:
        return {Any}
    rule = rule if "type" in rule or "$ref" not in rule else RECEIPT["$defs"][rule["$ref"].rpartition("/")[2]]
    if "const" in rule or "enum" in rule:
        return {type(value) for value in rule.get("enum", [rule.get("const")])}
    names = rule["type"]
    return {NAMES.get(name, type(None)) for name in ([names] if isinstance(names, str) else names)}


def declared(hint: Any) -> Iterator[Any]:
    """Yield the types of Python that an annotation allows."""
    if get_origin(hint) in (types.UnionType, Union):
        for one in get_args(hint):
            yield from declared(one)
    elif get_origin(hint) is Literal:
        yield from map(type, get_args(hint))
    elif is_typeddict(hint) or get_origin(hint) is Mapping:
        yield dict
    else:
        yield list if get_origin(hint) is Sequence else hint


@pytest.mark.parametrize("declaration", SIDES, ids=lambda one: one.__name__)
def test_every_key_that_the_schema_types_is_declared_with_its_type(declaration: type) -> None:
    rules = SIDES[declaration]
    hints = get_type_hints(declaration, localns=vars(document))
    assert {*hints} - UNSAID <= {*rules}
    assert {*hints} >= {key for key, rule in rules.items() if isinstance(rule, dict) and TYPED & {*rule}}
    for key in {*hints} - UNSAID:
        assert {*declared(hints[key])} == accepted(rules[key]), key
