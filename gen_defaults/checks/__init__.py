"""The checks of a table before it is written: each is a module with one line here, and a pure function.

``run`` runs them all. An error stops the job and nothing is written; a note is only listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gen_defaults.checks import contradictions, coverage, rows
from gen_defaults.checks.finding import CheckFinding, CheckSubject, Proved, Upstream

__all__ = ["CHECKS", "CheckFinding", "CheckSubject", "Proved", "Upstream", "run"]

Check = Callable[[CheckSubject], Iterable[CheckFinding]]

# What a file must look like; the others read rows and are asked only when these have nothing to say.
SHAPE: tuple[Check, ...] = (rows.missing, rows.kinds, rows.ranges, rows.unknown, rows.spelling)
CHECKS: tuple[Check, ...] = (
    coverage.orphans,
    coverage.shadowed,
    coverage.absent,
    coverage.unused,
    contradictions.contradicted,
    contradictions.refuted,
    contradictions.altered,
)


def run(subject: CheckSubject) -> list[CheckFinding]:
    """Return everything that is wrong or worth a note, what fails first."""
    findings = shape(subject)
    if not any(f.fails for f in findings):
        findings += [finding for check in CHECKS for finding in check(subject)]
    return sorted(findings, key=lambda f: not f.fails)


def shape(subject: CheckSubject) -> list[CheckFinding]:
    """Return the faults in the files' shape; the other checks require that there are none."""
    return [finding for check in SHAPE for finding in check(subject)]
