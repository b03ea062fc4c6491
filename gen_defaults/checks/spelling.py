"""Patterns, names and words that are not spelled as the table's schema wants them."""

from __future__ import annotations

from collections.abc import Iterator

from gen_defaults.checks import ranges
from gen_defaults.checks.finding import Finding, Subject

OTHERS = {"required", "minProperties", "type", "oneOf", "additionalProperties", *ranges.BOUNDS}


def check(subject: Subject) -> Iterator[Finding]:
    """What the schema refuses for any other reason."""
    for fault in subject.faults:
        if fault.rule == "uniqueItems":
            twice = next(item for n, item in enumerate(fault.value) if item in fault.value[:n])
            yield Finding(fault.file, str(twice), f"{fault.key} has it twice", "take one of them out")
        elif fault.rule not in OTHERS:
            yield Finding(fault.file, fault.row, fault.message, "spell it as docs/tables.md says")
