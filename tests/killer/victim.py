"""``importer``, which ends itself with ``kill -9`` at the point that ``KILL_AT`` names: ``"run begun"``.

``WORKFLOWS`` makes it one whose steps have another version, ``WAITS`` one with other waits (``impatient``).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from importer.__main__ import main
from importer.engines import process
from importer.service.jobs import runner
from importer.service.jobs.live_jobs import JobRun, LiveJob
from importer.service.jobs.runner import Runner
from importer.storage import jobs, queue
from tests.impatient import shorten

AT = os.environ.get("KILL_AT", "")
Point = Callable[..., str]


def die(point: str) -> None:
    """End here, if this is the point: nothing is flushed, closed or said."""
    if point == AT:
        os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, before: Point | None = None, after: Point | None = None) -> None:
    """Points before and behind a call; each function gives a point's name from the call's arguments."""
    real = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            die(before(*args, **kwargs))
        given = real(*args, **kwargs)
        if after is not None:
            die(after(*args, **kwargs))
        return given

    setattr(owner, name, call)


def plant() -> None:
    """Put all points into place."""
    around(Runner, "hurry", lambda *_: "asked")
    around(queue, "claim", lambda *_: "not claimed", lambda *_: "claim written")
    around(Runner, "_start", lambda *_: "claimed")
    around(JobRun, "_begin", lambda _, step: f"{step} not begun", lambda _, step: f"{step} begun")
    around(JobRun, "_perform", after=lambda _, step, *__: f"{step} done")
    around(JobRun, "_record", after=lambda _, step, __: f"{step} kept")
    around(process._Start, "wait", lambda *_: "engine started")
    around(LiveJob, "serves", lambda *_: "engine ready")
    around(jobs, "end", after=lambda _c, _j, state, **_: f"{state} written")
    around(jobs, "_cancel", after=lambda *_: "cancelled written")
    around(Runner, "cancelled", lambda *_: "cancelled")
    around(jobs, "again", after=lambda *_: "again written")


if __name__ == "__main__":
    plant()
    shorten()
    runner.VERSION = os.environ.get("WORKFLOWS", runner.VERSION)
    sys.exit(main())
