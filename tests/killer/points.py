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
    """One kill; ``says`` is what has happened until then."""

    kind: Kind
    process: Process
    at: str
    says: str


def _every() -> Iterator[Point]:
    yield Point("import", "server", "asked", "the job is committed, the answer is not sent")
    for kind, steps in STEPS.items():
        what: Kind = "import" if kind == "import" else "validation"
        yield Point(what, "worker", "not claimed", "the worker has seen that it waits")
        yield Point(what, "worker", "claim written", "its claim is written and not committed")
        yield Point(what, "worker", "claimed", "its claim is committed, nothing of it has begun")
        for step in steps:
            yield Point(what, "worker", f"{step} not begun", f"before '{step}'")
            yield Point(what, "worker", f"{step} begun", f"'{step}' has said that it begins")
            if step == "run":
                yield Point(what, "worker", "engine started", "the engine loads the model")
                yield Point(what, "worker", "engine ready", "the engine serves, no probe was sent")
            if step == "store":
                yield Point(what, "worker", "succeeded written", "all is written and not committed")
            yield Point(what, "worker", f"{step} done", f"'{step}' is done, its result is not kept")
            yield Point(what, "worker", f"{step} kept", f"the result of '{step}' is kept")
    yield Point("import", "server", "again written", "a retry is written and not committed")
    yield Point("validation", "server", "cancelled written", "a cancel is written and not committed")
    yield Point("validation", "server", "cancelled", "a cancel is committed, the engine still runs")


POINTS = tuple(_every())
