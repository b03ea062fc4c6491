"""What must hold before a table is written: each check is a module with one line here, and a pure function.

``run`` asks them all. What fails stops the job and nothing is written; what is only noted is listed.
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
    """Return what is wrong with how the files look; nothing else can be asked of them then."""
    return [finding for check in SHAPE for finding in check(subject)]
