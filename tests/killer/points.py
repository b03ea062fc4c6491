"""Where processes are killed: every boundary of every step, and between any two things that are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.killer.check import STEPS

Kind = Literal["import", "validation"]
Process = Literal["server", "worker"]


@dataclass(frozen=True, slots=True)
class Point:
    """One kill, before or after a call of ``victim``."""

    kind: Kind
    process: Process
    at: str


def _every() -> Iterator[Point]:
    yield Point("import", "server", "asked")
    yield Point("import", "server", "again written")
    yield Point("validation", "server", "cancelled written")
    yield Point("validation", "server", "cancelled")
    extra = {"run": ("engine started", "engine ready"), "store": ("succeeded written",)}
    kinds: tuple[Kind, ...] = ("import", "validation")
    for kind in kinds:
        steps = (f"{step} {end}" for step in STEPS[kind] for end in ("not begun", "begun", "done", "kept"))
        within = (at for step in STEPS[kind] for at in extra.get(step, ()))
        for at in ("not claimed", "claim written", "claimed", *steps, *within):
            yield Point(kind, "worker", at)


POINTS = tuple(_every())
