"""What must hold before a table is written: each check is a module with one line here, and a pure function.

``run`` asks them all. What fails stops the job and nothing is written; what is only noted is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gen_defaults.checks import (
    absent,
    altered,
    contradicted,
    kinds,
    missing,
    orphans,
    ranges,
    refuted,
    shadowed,
    spelling,
    unknown,
    unused,
)
from gen_defaults.checks.finding import Finding, Proved, Subject, Upstream

__all__ = ["CHECKS", "Finding", "Proved", "Subject", "Upstream", "run"]

Check = Callable[[Subject], Iterable[Finding]]

# What a file must look like; the others read rows and are asked only when these have nothing to say.
SHAPE: tuple[Check, ...] = (missing.check, kinds.check, ranges.check, unknown.check, spelling.check)
CHECKS: tuple[Check, ...] = (
    orphans.check,
    shadowed.check,
    absent.check,
    unused.check,
    contradicted.check,
    refuted.check,
    altered.check,
)


def run(subject: Subject) -> list[Finding]:
    """Everything that is wrong or worth a note, what fails first."""
    found = shape(subject)
    if not any(f.fails for f in found):
        found += [finding for check in CHECKS for finding in check(subject)]
    return sorted(found, key=lambda f: not f.fails)


def shape(subject: Subject) -> list[Finding]:
    """What is wrong with how the files look; nothing else can be asked of them then."""
    return [finding for check in SHAPE for finding in check(subject)]
