"""The jobs that run in this process: its identity, their state, and the watchers to notify.

Run the steps of a job in order: the result of each is recorded, and a recorded step is not run again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.exc import OperationalError, SQLAlchemyError

from importer.errors import ImporterError, described
from importer.frozen import frozen
from importer.progress import Progress
from importer.progress import Step as ProgressStep
from importer.service import telemetry
from importer.service.domain.failures import failure
from importer.storage import jobs, queue
from importer.storage.database import Database, driver_message

if TYPE_CHECKING:
    from importer.app.study import Studied
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


T = TypeVar("T")
Result = Mapping[str, Any]  # of one step, as JSON
Results = Mapping[str, Result]  # by step, those of a process before included
Step = Callable[[LiveJob, Results, Progress], Result]
INTERVAL = 0.25  # seconds between two events of progress
PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds between two tries while the database does not answer
LOG = logging.getLogger(__name__)


class ProgressReporter:
    """Progress of one step: an event at most every ``INTERVAL``, and the place where a stopped job ends."""

    def __init__(self, database: Database, live: LiveJob, step: str) -> None:
        self._database, self._live, self._step = database, live, step
        self._lock, self._last, self._text = threading.Lock(), 0.0, ""

    def __call__(self, text: str) -> None:
        """Record a text, unless one was recorded just now; raises Stopped."""
        self._live.check()
        with self._lock:
            if text == self._text or time.monotonic() - self._last < INTERVAL:
                return
            self._last, self._text = time.monotonic(), text
        figures = {"step": self._step} | (text.figures if isinstance(text, ProgressStep) else {})
        try:
            with self._database.writing() as connection:
                jobs.report(connection, self._live.job, text, figures)
        except SQLAlchemyError:  # no reason to end a job
            LOG.warning("progress of job %s could not be recorded", self._live.job.id)


class JobRun:
    """One job that this process has claimed."""

    def __init__(self, database: Database, live: LiveJob) -> None:
        self._database, self._live, self._job = database, live, live.job
        self._names: list[str] = []

    def run(self, steps: Mapping[str, Step]) -> None:
        """Run the steps that are not recorded; an error of a step ends the job.

        The job stays leased where the database is away for long: the runner gives it back.
        """
        job = self._job
        with telemetry.of_job(job.id):
            try:
                results = self._retry(self._results)
                self._names = [*steps]
                for name, step in steps.items():
                    if name not in results and not self._run(name, step, results):
                        return
            except Stopped:
                LOG.debug("stopped")
            except OperationalError as error:
                LOG.warning("the database does not answer: %s", driver_message(error))

    def _run(self, name: str, step: Step, results: dict[str, Result]) -> bool:
        """Run one step; false where the job does not go on."""
        self._live.check()
        if not self._retry(lambda: self._begin(name)):
            return False
        started = time.monotonic()
        try:
            results[name] = self._retry(lambda: self._perform(name, step, results))
            recorded = self._retry(lambda: self._record(name, results[name]))
        except OperationalError:
            raise
        except Exception as error:  # one job must not take the others with it
            self._log(name, started, self._fail(error))
            return False
        self._log(name, started, None)
        return recorded

    def _results(self) -> dict[str, Result]:
        with self._database.reading() as connection:
            return queue.results(connection, self._job)

    def _begin(self, name: str) -> bool:
        with self._database.writing() as connection:
            number, of = self._names.index(name) + 1, len(self._names)
            return jobs.begin(connection, self._job, name, number, of)

    def _perform(self, name: str, step: Step, results: Results) -> Result:
        self._live.check()
        return step(self._live, results, ProgressReporter(self._database, self._live, name))

    def _record(self, name: str, result: Result) -> bool:
        with self._database.writing() as connection:
            return queue.record(connection, self._job, name, result)

    def _fail(self, error: Exception) -> str:
        """End the job with its failure; one that comes of being stopped is none."""
        self._live.check()
        if not isinstance(error, ImporterError):
            LOG.error("job %s failed", self._job.id, exc_info=error)
        details = failure(described(error))
        self._retry(lambda: fail(self._database, self._job, details))
        return details["kind"]

    def _retry(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, tried again while the database is away for a moment."""
        for pause in PAUSES:
            try:
                return work()
            except OperationalError:
                self._live.check()
                time.sleep(pause)
        return work()

    def _log(self, name: str, started: float, ended: str | None) -> None:
        seconds = round(time.monotonic() - started, 3)
        LOG.info("%s", name, extra={"fields": {"step": name, "seconds": seconds, "ended": ended}})


def fail(database: Database, job: jobs.Job, details: jobs.Failure) -> None:
    """End a job with its failure, or let it wait for an answer."""
    with database.writing() as connection:
        jobs.fail(connection, job, details)
