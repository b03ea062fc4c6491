"""A required field that is missing, in a table or in a row of a source."""

from __future__ import annotations

from collections.abc import Iterator

from gen_defaults.checks.finding import SAMPLING, Finding, Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Fields that the schema or the source requires; a sampling row without a source."""
    for fault in subject.faults:
        if fault.rule == "required":
            yield Finding(fault.file, fault.row, f"{fault.key} is missing", fault.step or f"give {fault.key}")
        elif fault.rule == "minProperties":
            yield Finding(
                fault.file, fault.row, "it holds nothing", fault.step or "give a value, or take the row out"
            )
    families, sources = subject.sampling.get("families"), subject.sampling.get("sources")
    if isinstance(families, dict) and isinstance(sources, dict):
        for family in families:
            if family not in sources:
                yield Finding(SAMPLING, family, "its source is missing", "say in sources who says so")
