"""Packages of an engine's environment beside what the engine's packages ask for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from importer import launcher
from importer.engines.deaths import ENGINE, ENVIRONMENT, DeathCause, Died
from importer.frozen import frozen
from importer.launcher import Purpose, isolated
from importer.reasons import Reason

WORKER = Path(__file__).with_name("parser_worker") / "requirements.py"
SECONDS = 30.0
MOST = 20  # conflicts that are shown


@frozen
class Conflict:
    """A package that asks for releases of another one, of which another release is installed, or none."""

    package: str
    requirement: str
    installed: str


def conflicts_of(python: Path, distributions: Sequence[str]) -> tuple[Conflict, ...]:
    """Return the conflicts among the packages that an engine needs; none where they cannot be read.

    Packages that are away are none: an engine is installed without what its server does not use.
    """
    return tuple(one for one in _unmet(python, distributions) if one.installed)[:MOST]


def missing_of(python: Path, distributions: Sequence[str]) -> tuple[Conflict, ...]:
    """Return the requirements of packages that are away; none where they cannot be read."""
    return tuple(one for one in _unmet(python, distributions) if not one.installed)[:MOST]


def _unmet(python: Path, distributions: Sequence[str]) -> tuple[Conflict, ...]:
    argv = isolated(str(WORKER), *distributions, python=python)
    try:
        done = launcher.run(argv, Purpose.QUESTION, seconds=SECONDS)
        rows = json.loads(done.output) if done.code == 0 else []
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(Conflict(*map(str, row)) for row in rows) if isinstance(rows, list) else ()


def judged(cause: DeathCause, python: Path, distributions: Sequence[str]) -> DeathCause:
    """Return the cause of an end; the environment for one of the engine's that has the wrong packages."""
    if cause.attribution != ENGINE:
        return cause
    found = conflicts_of(python, distributions)
    if not found:
        return cause
    reason = Reason(Died.PACKAGE_UNFIT, problem=cause.reason, **asdict(found[0]))
    return DeathCause(reason, ENVIRONMENT)
