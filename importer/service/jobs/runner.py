"""Run jobs: claim as many as this process has room for, and give back the jobs of processes that died."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from sqlalchemy.exc import OperationalError, SQLAlchemyError

from importer import backends
from importer.app.session import ImportSession
from importer.app.study import Studied
from importer.config import now
from importer.engines import CHOSEN, ENGINES, get, install
from importer.engines.machine import has_gpu, this_machine
from importer.errors import EngineError, ServiceError
from importer.hub.rate_limit import Budget
from importer.memory import devices
from importer.memory.devices import Device
from importer.sandbox import Sandbox
from importer.service.domain.failures import failure
from importer.service.domain.gallery import Gallery
from importer.service.jobs.import_steps import ImportSteps
from importer.service.jobs.live_jobs import JobRun, LiveJob, LiveJobs, Step, fail, has_exited, this_process
from importer.service.jobs.recheck_steps import RecheckSteps
from importer.service.jobs.validation_steps import ValidationSteps
from importer.service.settings import Settings
from importer.storage import processes, queue, retention
from importer.storage.database import driver_message
from importer.storage.jobs import Job, Kind
from importer.storage.processes import Executor, LeaseMonitor, Wakeups

LOG = logging.getLogger(__name__)
VERSION = "2"  # of the steps: grows when one cannot go on with the results of another version
LOOK = 1.0  # seconds between two looks for cancelled jobs and dead processes
HEARTBEAT = 5.0  # seconds between two heartbeats: each is a commit
IDLE = 5.0  # seconds between two looks at the queue, where nothing wakes this process earlier
POLL = 0.2  # seconds between two looks at jobs that end
REVIEW = 10.0  # seconds between two looks for jobs that no process will end
RETENTION = 60.0  # seconds between two looks whether old rows are to be deleted
PATIENCE = 5.0  # seconds that jobs have to end when the process does


class Runner:
    """The jobs of one process. A context manager: afterwards what was under way waits for another process."""

    def __init__(self, gallery: Gallery, settings: Settings) -> None:
        self.gallery, self.settings, self.live = gallery, settings, LiveJobs()
        # A job or a preview uses one child at a time, so none of them waits for another.
        self.bench = ImportSession(
            sandbox=Sandbox(2 * settings.imports + settings.previews + 1), places=settings.places
        )
        me = this_process()
        own = this_machine(backends.DEFAULT)
        self.device = f"{me.host}/{settings.device or own.kind}" if settings.validate else None
        self.me = Executor(
            f"{me.host}-{me.pid}-{me.start_time}", me.place, me.host, me.pid, now(), time.time(),
            device=self.device, engines=self._engines(), memory=self._memory(own), version=VERSION,
        )  # fmt: skip
        self._room: Mapping[Kind, int] = {
            "import": settings.imports, "validation": int(settings.validate),
            "recheck": min(1, settings.imports),
        }  # fmt: skip
        budget = Budget()  # of all imports of this process
        imports = ImportSteps(gallery, self.bench, settings, budget)
        validations = ValidationSteps(gallery, self.device or me.host, settings.places, self.bench)
        self._steps: Mapping[Kind, Mapping[str, Step]] = {
            "import": imports.steps, "validation": validations.steps,
            "recheck": RecheckSteps(gallery, self.bench, settings, budget).steps,
        }  # fmt: skip
        self._ending, self._wakeups = threading.Event(), Wakeups(gallery.database)
        self._leases, self._seen = LeaseMonitor(), time.monotonic()
        self._next_review = self._next_sweep = 0.0
        work = {"heartbeat": self._keep_alive, "dispatcher": self._dispatch, "retention": self._retain}
        self._threads = [threading.Thread(target=w, name=n, daemon=True) for n, w in work.items()]

    def __enter__(self) -> Runner:
        self.bench.__enter__()
        self._beat()
        self._wakeups.begin()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._wakeups.end()
        for thread in self._threads:
            thread.join(PATIENCE)  # a database that does not answer is not waited for
        for thread in _stop_all([*self.live.all().values()]):
            thread.join()
        self.bench.sandbox.close()  # calls of jobs end now, and another process resumes the jobs
        deadline = time.monotonic() + PATIENCE
        while self.live.all() and time.monotonic() < deadline:
            time.sleep(POLL)
        try:
            self._release_own(keep=())
        except SQLAlchemyError as error:  # others find out when its lease has expired
            LOG.warning("jobs could not be given back: %s", driver_message(error))
        self.bench.__exit__(None, None, None)

    @property
    def well(self) -> bool:
        """Return whether its threads live and its last heartbeat is not old."""
        alive = all(thread.is_alive() for thread in self._threads)
        return alive and time.monotonic() - self._seen < processes.LEASE

    def steps_of(self, job: Job) -> tuple[str, ...]:
        """Return the names of the steps of a job, in their order; a list has none."""
        return tuple(self._steps.get(job.kind, ()))

    # For those who create and cancel jobs

    def hurry(self) -> None:
        """Query the queue now; without it, a new job waits for the next query."""
        self._wakeups.event.set()

    def bring(self, job: Job, studied: Studied) -> None:
        """Keep the analysis from before the job was created, if this process is to run it."""
        self.live.keep(job, studied)
        self.hurry()

    def cancelled(self, cancelled_jobs: Sequence[Job]) -> None:
        """Stop jobs that were cancelled: here at once, elsewhere at that process's next heartbeat."""
        live = self.live.all()
        _stop_all([live[job.id] for job in cancelled_jobs if job.id in live])

    # The dispatcher: one thread claims, and starts a thread for each job

    def _dispatch(self) -> None:
        while not self._ending.is_set():
            self._wakeups.wait(IDLE)
            try:
                self._sweep()
                for kind in self._room:
                    while self._has_room(kind) and (job := self._claim(kind)) is not None:
                        self._start(job)
            except OperationalError as error:  # the next look tries again
                LOG.warning("the database does not answer: %s", driver_message(error))
            except Exception:
                LOG.exception("no job could be claimed")

    def _has_room(self, kind: Kind) -> bool:
        live = sum(one.job.kind == kind for one in self.live.all().values())
        return live < self._room[kind] and not self._ending.is_set()

    def _claim(self, kind: Kind) -> Job | None:
        with self.gallery.database.reading() as connection:  # most looks find nothing, and hold up no writer
            if not queue.waiting(connection, self.me, kind):
                return None
        with self.gallery.database.writing() as connection:
            return queue.claim(connection, self.me, kind)

    def _start(self, job: Job) -> None:
        live = self.live.add(job)
        threading.Thread(target=self._run, args=(live,), name=f"job-{job.id}", daemon=True).start()

    def _run(self, live: LiveJob) -> None:
        try:
            JobRun(self.gallery.database, live).run(self._steps[live.job.kind])
        except Exception:
            LOG.exception("job %s could not be run", live.job.id)
        finally:
            self.live.remove(live)
            self.hurry()  # there is room for another one

    def _sweep(self) -> None:
        """Give back jobs that are leased to this process and do not run: their end was not written.

        The thread that claims does it, so that no job is between its claim and its start.
        """
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + REVIEW
            self._release_own(keep=[*self.live.all()])

    def _release_own(self, keep: Sequence[str]) -> None:
        with self.gallery.database.writing() as connection:
            queue.release(connection, [self.me.id], keep)

    # The heartbeat: what goes on beside the jobs

    def _keep_alive(self) -> None:
        duties = (self._heartbeat, self._stop_lost, self._take_over, self._review)
        while not self._ending.wait(LOOK):
            for duty in duties:
                try:
                    duty()
                except OperationalError as error:  # the next heartbeat tries again
                    LOG.warning("%s: the database does not answer: %s", duty.__name__, driver_message(error))
                except Exception:
                    LOG.exception("%s", duty.__name__)

    def _heartbeat(self) -> None:
        if time.monotonic() - self._seen >= HEARTBEAT:
            self._beat()

    def _beat(self) -> None:
        with self.gallery.database.writing() as connection:
            new = processes.heartbeat(connection, self.me)
        self._seen = time.monotonic()
        if new:  # others took this process for dead, and have its jobs
            _stop_all([*self.live.all().values()])

    def _stop_lost(self) -> None:
        """Stop jobs that another process has cancelled or taken over."""
        live = self.live.all()
        if not live:
            return
        with self.gallery.database.reading() as connection:
            lost = queue.lost(connection, [one.job for one in live.values()])
        _stop_all([live[ident] for ident in lost])

    def _take_over(self) -> None:
        """Give back the jobs of processes that have exited; any process with room resumes them."""
        with self.gallery.database.reading() as connection:
            others = [one for one in processes.all_executors(connection) if one.id != self.me.id]
        expired = self._leases.expired(others)
        dead = [one.id for one in others if one.id in expired or _exited(one)]
        if not dead:
            return
        with self.gallery.database.writing() as connection:
            processes.remove(connection, expired)
            released = queue.release(connection, dead)
        if released:
            self.hurry()
        if expired:  # a device may come back: its jobs stay with it until its lease has expired
            self._restart()

    def _review(self) -> None:
        """End or restart jobs that no process can claim."""
        if time.monotonic() < self._next_review:
            return
        self._next_review = time.monotonic() + REVIEW
        self._restart()
        with self.gallery.database.reading() as connection:
            exhausted = queue.exhausted(connection)
        for job in exhausted:
            details = failure(ServiceError("gave-up", job=job.id, times=job.claims))
            fail(self.gallery.database, job, details)

    def _restart(self) -> None:
        """Restart jobs whose device, or whose version of the steps, has no process any more."""
        with self.gallery.database.reading() as connection:
            running = processes.all_executors(connection)
            versions = {one.version for one in running if not _exited(one)}
            orphaned = queue.orphaned(connection, [one.device for one in running if one.device])
            outdated = queue.outdated(connection, versions)
        stale = {job.id: (job, f"version {job.version} of its workflow is gone") for job in outdated}
        stale |= {job.id: (job, f"{job.device} is gone") for job in orphaned}
        if not stale:
            return
        with self.gallery.database.writing() as connection:
            for job, cause in stale.values():
                queue.restart(connection, job, cause)
        self.hurry()

    # The retention: one process of all deletes old jobs

    def _retain(self) -> None:
        while not self._ending.wait(RETENTION):
            try:
                with self.gallery.database.writing() as connection:
                    mine = retention.due(connection)
                if mine:
                    days, ending = self.settings.keep_jobs_days, self._ending.is_set
                    removed = retention.run(self.gallery.database, days, ending)
                    LOG.info("retention", extra={"fields": {"removed": removed}})
            except SQLAlchemyError as error:  # the next look tries again
                LOG.warning("no old job could be deleted: %s", driver_message(error))

    # What this process can do

    def _engines(self) -> tuple[str, ...]:
        served = (name for name in (*dict(ENGINES.every()), *CHOSEN) if _serves(name))
        return tuple(served) if self.settings.validate else ()

    def _memory(self, own: Device) -> int | None:
        return devices.size(self.settings.memory) if self.settings.memory else own.memory


def _exited(one: Executor) -> bool:
    return has_exited(one.place, one.pid, one.born)


def _serves(name: str) -> bool:
    """Return whether the engine is installed, and this machine has the card that its server needs."""
    try:
        engine = get(name)
        return (has_gpu() or not engine.needs_card) and install.find(engine) is not None
    except EngineError:
        return False


def _stop_all(jobs_to_stop: Sequence[LiveJob]) -> list[threading.Thread]:
    """Stop jobs side by side: an engine may take seconds to end."""
    threads = [threading.Thread(target=one.stop, daemon=True) for one in jobs_to_stop]
    for thread in threads:
        thread.start()
    return threads
