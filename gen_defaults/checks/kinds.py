"""Null, something nested or text where a number belongs, and the like."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gen_defaults.checks.finding import Finding, Subject
from gen_defaults.checks.schema import Fault

WORDS = {
    "number": "a number",
    "integer": "a whole number",
    "object": "an object",
    "array": "a list",
    "string": "text",
}
LONGEST = 40  # characters of a value that are shown


def check(subject: Subject) -> Iterator[Finding]:
    """Values of another kind than their place asks for."""
    for fault in subject.faults:
        if fault.rule in {"type", "oneOf"}:
            wanted = WORDS.get(str(fault.bound), "a name or null")
            says = f"{_place(fault)} is {_said(fault.value)} where {wanted} belongs"
            yield Finding(
                fault.file,
                fault.row,
                says,
                fault.step or f"give {wanted}, or leave it out where it is not known",
            )


def _place(fault: Fault) -> str:
    return "the row" if fault.row and fault.key in {"", "families"} else fault.key or "the file"


def _said(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | list):
        return f"nested: {json.dumps(value)[:LONGEST]}"
    return f"the text {value[:LONGEST]!r}" if isinstance(value, str) else str(value)
