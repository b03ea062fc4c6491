"""The jobs that run in this process: its identity, their state, and the watchers to notify."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from importer.frozen import frozen
from importer.storage import jobs
from importer.storage.database import Database

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


PROC = Path("/proc")


@frozen
class ProcessIdentity:
    """A process; ``place`` is the same for all that see one another's process ids."""

    place: str
    host: str
    pid: int
    start_time: str


@cache
def this_process() -> ProcessIdentity:
    """Return the identity of this process."""
    pid = os.getpid()
    return ProcessIdentity(_place(), platform.node() or "localhost", pid, start_time(pid) or "0")


def has_exited(place: str, pid: int, since: str) -> bool:
    """Return whether a process of this machine has exited; false for one of another machine."""
    return place == this_process().place and start_time(pid) != since


def start_time(pid: int) -> str | None:
    """Return when a process was started, in the kernel's ticks; ``None`` for none, or for a zombie."""
    try:
        state, *rest = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return _alive(pid)
    return None if state in {"Z", "X"} else rest[18]


def _alive(pid: int) -> str | None:
    """Return whether a process exists, where there is no /proc."""
    if PROC.joinpath("self", "stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "0"


def _place() -> str:
    """Return the boot and the space of process ids, so that two containers are two places."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(PROC / 'self/ns/pid')}"  # noqa: PTH115 - no path
    except OSError:
        return platform.node()


ALL = "summary"  # in place of a root: the figures of all jobs
LOOK = 0.2  # seconds between two queries, while there are watchers


class Watching:
    """Wakes the watchers of a job when it has new events."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._heads: dict[str, Hashable] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def job(self, root: str) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set whenever there may be new events of a job, or of ``ALL``."""
        event = asyncio.Event()
        self._watchers.setdefault(root, set()).add(event)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            yield event
        finally:
            self._watchers[root].discard(event)
            if not self._watchers[root]:
                del self._watchers[root]
                self._heads.pop(root, None)

    def end(self) -> None:
        """Wake all that watch: the process ends."""
        for events in self._watchers.values():
            for event in events:
                event.set()

    async def _look(self) -> None:
        while self._watchers:
            try:
                heads = await asyncio.to_thread(self._now, [*self._watchers])
            except SQLAlchemyError:  # the next look tries again; watchers look for themselves now and then
                heads = {}
            for root, head in heads.items():
                if self._heads.get(root) != head:
                    self._heads[root] = head
                    for event in self._watchers.get(root, ()):
                        event.set()
            await asyncio.sleep(LOOK)

    def _now(self, roots: list[str]) -> dict[str, Hashable]:
        with self._database.reading() as connection:
            heads: dict[str, Hashable] = {**jobs.heads(connection, roots)}
            if ALL in roots:
                heads[ALL] = str(jobs.summary(connection))
            return heads
