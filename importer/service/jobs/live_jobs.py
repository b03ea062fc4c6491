"""The jobs that run in this process, with state that any process can make again."""

from __future__ import annotations

from threading import Event, Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.app.decide import Studied
    from importer.engines.process import EngineServer
    from importer.hub.snapshot import Snapshot
    from importer.storage.jobs import Job

MAX_STUDIED = 16  # analyses that are kept for jobs which have not begun


class Stopped(BaseException):
    """The job was cancelled, or is left to another process.

    No ``Exception``, so that nothing takes it for a failure of a step.
    """


class LiveJob:
    """One job that runs in this process, with its row at the claim."""

    def __init__(self, job: Job, studied: Studied | None = None) -> None:
        self.job, self.studied = job, studied
        self.snapshot: Snapshot | None = None if studied is None else studied.snapshot
        self._stop, self._lock = Event(), Lock()
        self._served: EngineServer | None = None

    def stop(self) -> None:
        """Stop the engine with its process group, and the job at its next ``check``.

        Returns once the engine has exited.
        """
        with self._lock:
            self._stop.set()
            served = self._served
        if served is not None:
            served.stop()

    def serves(self, served: EngineServer) -> None:
        """Remember the engine; raises Stopped where it comes too late."""
        with self._lock:
            self._served = served
        self.check()

    def check(self) -> None:
        """Raise Stopped where the job is to end."""
        if self._stop.is_set():
            raise Stopped


class LiveJobs:
    """All jobs that run in this process, and analyses for those that may be claimed here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._jobs: dict[str, LiveJob] = {}
        self._studied: dict[tuple[str, int], Studied] = {}

    def add(self, job: Job) -> LiveJob:
        """Return the live job of one that was claimed, with the analysis that was kept for it."""
        with self._lock:
            live = LiveJob(job, self._studied.pop((job.id, job.attempt), None))
            self._jobs[job.id] = live
            return live

    def remove(self, live: LiveJob) -> None:
        """Forget a job that has ended; the same job may have been claimed once more meanwhile."""
        with self._lock:
            if self._jobs.get(live.job.id) is live:
                del self._jobs[live.job.id]

    def keep(self, job: Job, studied: Studied) -> None:
        """Keep an analysis that was made before the job was created; any process may claim it."""
        with self._lock:
            self._studied[job.id, job.attempt] = studied
            while len(self._studied) > MAX_STUDIED:
                del self._studied[next(iter(self._studied))]

    def all(self) -> dict[str, LiveJob]:
        """Return all by id."""
        with self._lock:
            return dict(self._jobs)
