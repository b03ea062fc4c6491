"""Rows that break their schema: fields missing, of another kind, out of range, misspelt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gen_defaults.checks.finding import SAMPLING, CheckFinding, CheckSubject
from gen_defaults.checks.schema import RowFault


def missing(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield required fields that are missing, and sampling rows without a source."""
    for fault in subject.faults:
        if fault.rule == "required":
            yield CheckFinding(
                fault.file, fault.row, f"{fault.key} is missing", fault.step or f"give {fault.key}"
            )
        elif fault.rule == "minProperties":
            yield CheckFinding(
                fault.file, fault.row, "it holds nothing", fault.step or "give a value, or take the row out"
            )
    families, sources = subject.sampling.get("families"), subject.sampling.get("sources")
    if isinstance(families, dict) and isinstance(sources, dict):
        for family in families:
            if family not in sources:
                yield CheckFinding(SAMPLING, family, "its source is missing", "say in sources who says so")


WORDS = {
    "number": "a number",
    "integer": "a whole number",
    "object": "an object",
    "array": "a list",
    "string": "text",
}
LONGEST = 40  # characters of a value that are shown


def kinds(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield values of another type than their field's."""
    for fault in subject.faults:
        if fault.rule in {"type", "oneOf"}:
            expected = WORDS.get(str(fault.bound), "a name or null")
            message = f"{_place(fault)} is {_described(fault.value)} where {expected} belongs"
            yield CheckFinding(
                fault.file,
                fault.row,
                message,
                fault.step or f"give {expected}, or leave it out where it is not known",
            )


def _place(fault: RowFault) -> str:
    return "the row" if fault.row and fault.key in {"", "families"} else fault.key or "the file"


def _described(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | list):
        return f"nested: {json.dumps(value)[:LONGEST]}"
    return f"the text {value[:LONGEST]!r}" if isinstance(value, str) else str(value)


BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
STEP = "take the vendor's figure, or leave the field out"


def ranges(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield numbers out of range."""
    for fault in subject.faults:
        if fault.rule in BOUNDS:
            message = f"{fault.key} is {fault.value}, which is not {BOUNDS[fault.rule]} {fault.bound}"
            yield CheckFinding(fault.file, fault.row, message, fault.step or STEP)


def unknown(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield fields that the schema lacks, and fields of a source that are neither known nor ignored."""
    for fault in subject.faults:
        if fault.rule == "additionalProperties":
            yield CheckFinding(
                fault.file,
                fault.row,
                f"no field is called {fault.key}",
                "correct its name, see gen_defaults/README.md",
            )
    for upstream in subject.upstream:
        rows: dict[str, list[str]] = {}
        for family, row in upstream.rows.items():
            for name in row if isinstance(row, Mapping) else ():
                if name not in upstream.known and name not in upstream.ignored:
                    rows.setdefault(str(name), []).append(family)
        for name, families in sorted(rows.items()):
            more = f" and {len(families) - 1} more" if len(families) > 1 else ""
            message = f"{name} is a field that is not known here, in {families[0]}{more}"
            yield CheckFinding(
                upstream.source, families[0], message, "name it in the source as taken over or as left out"
            )


OTHERS = {"required", "minProperties", "type", "oneOf", "additionalProperties", *BOUNDS}


def spelling(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield all other faults of the schema."""
    for fault in subject.faults:
        if fault.rule == "uniqueItems":
            twice = next(item for n, item in enumerate(fault.value) if item in fault.value[:n])
            yield CheckFinding(fault.file, str(twice), f"{fault.key} has it twice", "take one of them out")
        elif fault.rule not in OTHERS:
            yield CheckFinding(
                fault.file, fault.row, fault.message, "gen_defaults/README.md has the spelling"
            )
