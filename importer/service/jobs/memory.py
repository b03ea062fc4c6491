"""What a process holds of its running jobs: nothing that cannot be made again."""

from __future__ import annotations

from threading import Event, Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.app.decide import Studied
    from importer.engines.process import EngineServer
    from importer.hub.snapshot import Snapshot

LOOKS = 16  # that are kept for jobs which have not begun


class Stopped(Exception):
    """The job was cancelled."""


class Leaving(BaseException):
    """The process ends or has lost the job: another one goes on with it.

    No ``Exception``, so that nothing records it as what came of a step.
    """


class Running:
    """One job under way in this process."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.studied: Studied | None = None
        self._stop, self._leave, self._lock = Event(), Event(), Lock()
        self._served: EngineServer | None = None

    def stop(self, *, leave: bool = False) -> None:
        """Let it end: its engine now, with its whole process group, and itself at its next word.

        ``leave`` leaves the job to another process. Waits until the engine is gone.
        """
        with self._lock:
            (self._leave if leave else self._stop).set()
            served = self._served
        if served is not None:
            served.stop()

    def serves(self, served: EngineServer) -> None:
        """Remember the engine; raises Stopped or Leaving where it is too late."""
        with self._lock:
            self._served = served
        self.check()

    def check(self) -> None:
        """Raises Stopped where the job was cancelled, Leaving where it is no longer this process's."""
        if self._leave.is_set():
            raise Leaving
        if self._stop.is_set():
            raise Stopped


class Held:
    """All jobs under way in this process; one that is new here begins with nothing, or with a look."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._jobs: dict[str, Running] = {}
        self._looks: dict[str, Studied] = {}

    def get(self, ident: str) -> Running:
        """What is held of a job."""
        with self._lock:
            return self._jobs.setdefault(ident, Running())

    def drop(self, ident: str) -> None:
        """The job has ended."""
        with self._lock:
            self._jobs.pop(ident, None)

    def bring(self, workflow: str, studied: Studied) -> None:
        """Keep what was seen before the job was asked for; another process may be the one that runs it."""
        with self._lock:
            self._looks[workflow] = studied
            while len(self._looks) > LOOKS:
                del self._looks[next(iter(self._looks))]

    def brought(self, workflow: str) -> Studied | None:
        """What was seen before, once."""
        with self._lock:
            return self._looks.pop(workflow, None)

    def jobs(self) -> dict[str, Running]:
        """All that are under way."""
        with self._lock:
            return dict(self._jobs)
