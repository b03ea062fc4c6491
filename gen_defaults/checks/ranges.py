"""A number out of range."""

from __future__ import annotations

from collections.abc import Iterator

from gen_defaults.checks.finding import Finding, Subject

BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
STEP = "take the vendor's figure, or leave the field out"


def check(subject: Subject) -> Iterator[Finding]:
    """Numbers that no engine takes."""
    for fault in subject.faults:
        if fault.rule in BOUNDS:
            says = f"{fault.key} is {fault.value}, which is not {BOUNDS[fault.rule]} {fault.bound}"
            yield Finding(fault.file, fault.row, says, fault.step or STEP)
