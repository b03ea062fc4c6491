"""``importer``, which ends itself with ``kill -9`` at the point that ``KILL_AT`` names: ``"run begun"``.

``WORKFLOWS`` makes it one whose workflows have another version.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from dbos import DBOS

from importer.__main__ import main
from importer.engines import process
from importer.gallery import jobs
from importer.service.jobs import crew, workflows
from importer.service.jobs.memory import Running

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
    around(crew.Crew, "hurry", lambda *_: "asked")
    around(DBOS, "enqueue_workflow", lambda *_: "not queued", lambda *_: "queued")
    around(crew.Crew, "_enqueued", after=lambda *_: "noted")
    around(crew.Crew, "begin", lambda _c, _i, _a, s: f"{s} not begun", lambda _c, _i, _a, s: f"{s} begun")
    around(workflows, "_step", after=lambda _i, _a, step, *_: f"{step} done")
    around(DBOS, "run_step", after=lambda options, *_: f"{options['name']} kept")
    around(process, "_await", lambda *_: "engine started")
    around(Running, "serves", lambda *_: "engine ready")
    around(jobs, "end", after=lambda _c, _j, state, **_: f"{state} written")
    around(crew.Crew, "cancelled", lambda *_: "cancelled")
    around(jobs, "again", after=lambda *_: "again written")


if __name__ == "__main__":
    plant()
    crew.VERSION = os.environ.get("WORKFLOWS", crew.VERSION)
    sys.exit(main())
