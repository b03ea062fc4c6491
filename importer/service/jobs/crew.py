"""What runs the jobs of this process: its queues, its sign of life, and what it does for the dead."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID
from sqlalchemy import URL
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from importer.app.decide import Studied
from importer.app.import_ import now
from importer.app.session import ImportSession
from importer.engines import CHOSEN, ENGINES, get, install
from importer.engines.machine import this_machine
from importer.errors import EngineError, ServiceError
from importer.gallery import answers, executors, jobs, queue
from importer.gallery.database import CLAIMS
from importer.gallery.executors import Executor, Silence
from importer.gallery.gallery import Gallery
from importer.gallery.jobs import Job
from importer.gallery.opening import said
from importer.memory import devices
from importer.memory.devices import Device
from importer.sandbox import Sandbox
from importer.service.api.problems import problem
from importer.service.jobs.importing import Importing
from importer.service.jobs.memory import Held, Running
from importer.service.jobs.place import gone, here
from importer.service.jobs.validating import Validating
from importer.service.settings import Settings

LOG = logging.getLogger(__name__)
VERSION = "1"  # of the workflows: grows when steps change so that one cannot go on with the other's results
IMPORTS = "imports"
BEAT = 1.0  # seconds between two signs of life
POLL = 0.2  # seconds between two looks at a queue
QUIET = 0.25  # seconds between two events of progress
REVIEW = 10.0  # seconds between two looks for jobs that nobody will end
FORGET = 3600.0  # seconds between two looks for answers that are old
OVER = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
PATIENCE = 5.0  # seconds that jobs have to end when the process does
_crew: Crew | None = None


def current() -> Crew:
    """The crew of this process."""
    if _crew is None:
        raise RuntimeError("no crew has been started")
    return _crew


class Saying:
    """Progress of one step: an event now and then, and the place where a stopped job ends."""

    def __init__(self, crew: Crew, job: Job, running: Running) -> None:
        self._crew, self._job, self._running = crew, job, running
        self._lock, self._last, self._text = threading.Lock(), 0.0, ""

    def __call__(self, text: str) -> None:
        """Say it, unless something was said just now; raises Stopped and Leaving."""
        self.check()
        with self._lock:
            if text == self._text or time.monotonic() - self._last < QUIET:
                return
            self._last, self._text = time.monotonic(), text
        self._crew.say(self._job, text)

    def check(self) -> None:
        """Raises Stopped or Leaving where the job is to end here."""
        self._running.check()


class Crew:
    """The jobs of one process. A context manager: afterwards what was under way waits for another process."""

    def __init__(self, gallery: Gallery, settings: Settings) -> None:
        self.gallery, self.settings, self.held = gallery, settings, Held()
        # A job or a look each asks one child at a time, so none of them waits for another.
        self.bench = ImportSession(sandbox=Sandbox(settings.imports + settings.previews or 1))
        me = here()
        own = this_machine("vllm")
        self.device = f"{me.host}/{settings.device or own.kind}" if settings.validate else None
        self.me = Executor(
            f"{me.host}-{me.pid}-{me.born}", me.place, me.host, me.pid, now(), time.time(),
            device=self.device, engines=self._engines(), memory=self._memory(own),
            version=VERSION,
        )  # fmt: skip
        self.importing = Importing(gallery, self.bench, settings, self.held)
        self.validating = Validating(gallery, self.device or me.host, self.held, settings.places)
        self._ending, self._new = threading.Event(), threading.Event()
        self._next_forgetting = 0.0
        self._next_review, self._silence, self._seen = 0.0, Silence(), time.monotonic()
        duties = {"crew": self._live, "feeder": self._feed}
        self._threads = [threading.Thread(target=d, name=n, daemon=True) for n, d in duties.items()]

    def __enter__(self) -> Crew:
        global _crew  # noqa: PLW0603 - workflows are functions of a module, and DBOS has one of itself
        from importer.service.jobs import workflows  # noqa: F401 - registers them

        _crew = self
        self.bench.__enter__()
        self._sign()
        url = self.gallery.database.url
        config: DBOSConfig = {
            "name": "importer", "system_database_url": _durable(url), "executor_id": self.me.id,
            "application_version": VERSION, "log_level": "WARNING",
            "notification_listener_polling_interval_sec": 1.0,
            "serializer": DBOSPortableJSONSerializer(),  # its own would run what lies there
        }  # fmt: skip
        _join_logs()
        DBOS(config=config)
        DBOS.listen_queues(self._queues())
        DBOS.launch()
        DBOS.register_queue(
            IMPORTS, worker_concurrency=max(1, self.settings.imports), polling_interval_sec=POLL,
            on_conflict="always_update" if self.settings.imports else "never_update",
        )  # fmt: skip
        if self.device is not None:
            DBOS.register_queue(_queue(self.device), global_concurrency=1, polling_interval_sec=POLL)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        global _crew  # noqa: PLW0603
        self._ending.set()
        self._new.set()
        for thread in self._threads:
            thread.join(PATIENCE)  # a database that does not answer is not waited for
        for thread in _stop_all([*self.held.jobs().values()], leave=True):
            thread.join()
        self.bench.sandbox.close()  # whatever a job asks it ends now, and the job goes on elsewhere
        deadline = time.monotonic() + PATIENCE
        while self.held.jobs() and time.monotonic() < deadline:
            time.sleep(POLL)
        DBOS.destroy(workflow_completion_timeout_sec=0)
        self.bench.__exit__(None, None, None)
        self.bench.sandbox.close()
        _crew = None

    @property
    def well(self) -> bool:
        """Whether its threads live and its last sign of life is not old."""
        there = all(thread.is_alive() for thread in self._threads)
        return there and time.monotonic() - self._seen < executors.LEASE

    # For those who ask for jobs

    def hurry(self) -> None:
        """There are new jobs: look now. They are in the database, so that nothing is lost without this."""
        self._new.set()

    def bring(self, job: Job, studied: Studied) -> None:
        """Let a new job begin with what was seen when it was asked for, if this process is to run it."""
        self.held.bring(job.workflow, studied)
        self.hurry()

    def cancelled(self, found: Sequence[Job]) -> None:
        """Stop what runs of jobs that were cancelled: here at once, elsewhere at that process's next look."""
        held = self.held.jobs()
        _stop_all([held[job.id] for job in found if job.id in held])
        workflows = [job.workflow for job in found if job.kind != "imports"]
        if workflows:
            DBOS.cancel_workflows(workflows)

    # For the workflows

    def begin(self, ident: str, attempt: int, step: str) -> Job | None:
        """The job, if this attempt may go on with a step."""
        with self.gallery.database.writing() as connection:
            job = jobs.get(connection, ident)
            if job.attempt != attempt or not jobs.begin(connection, job, step):
                return None
            return job

    def progress(self, job: Job) -> Saying:
        """Where a step says how far it is."""
        return Saying(self, job, self.held.get(job.id))

    def say(self, job: Job, text: str) -> None:
        """Note progress; that it cannot be noted stops nobody."""
        try:
            with self.gallery.database.writing() as connection:
                jobs.say(connection, job, text)
        except SQLAlchemyError:
            LOG.warning("progress of job %s could not be noted", job.id)

    def fail(self, job: Job, error: Mapping[str, Any]) -> dict[str, Any]:
        """End a job with a problem."""
        with self.gallery.database.writing() as connection:
            jobs.end(connection, job, "failed", error=error)
        return {"ended": error["kind"]}

    # What goes on beside the jobs

    def _live(self) -> None:
        duties = (
            self._sign, self._look_after_ended, self._take_over, self._give_up, self._claim, self._forget,
        )  # fmt: skip
        while not self._ending.wait(BEAT):
            for duty in duties:
                try:
                    duty()
                except OperationalError as error:  # the next beat tries again
                    LOG.warning("%s: the database does not answer: %s", duty.__name__, said(error))
                except Exception:
                    LOG.exception("%s", duty.__name__)

    def _feed(self) -> None:
        """Put imports into their queue in the order in which they were asked for, whoever asked whom."""
        from importer.service.jobs.workflows import import_model

        while not self._ending.is_set():
            self._new.wait(BEAT)
            self._new.clear()
            try:
                while found := self._waiting():
                    for job in found:
                        with SetWorkflowID(job.workflow):
                            DBOS.enqueue_workflow(IMPORTS, import_model, job.id, job.attempt)
                    self._enqueued(found)
            except OperationalError as error:  # the next look tries again
                LOG.warning("the database does not answer: %s", said(error))
            except Exception:
                LOG.exception("jobs could not be put into their queue")

    def _waiting(self) -> list[Job]:
        with self.gallery.database.reading() as connection:
            return [] if self._ending.is_set() else queue.waiting(connection)

    def _sign(self) -> None:
        with self.gallery.database.writing() as connection:
            new = executors.sign(connection, self.me)
        self._seen = time.monotonic()
        if new:  # others took this process for dead, and have its jobs
            _stop_all([*self.held.jobs().values()], leave=True)

    def _look_after_ended(self) -> None:
        """Stop what was cancelled through another process."""
        held = self.held.jobs()
        with self.gallery.database.reading() as connection:
            over = jobs.ended(connection, [*held])
        _stop_all([held[ident] for ident in over])

    def _take_over(self) -> None:
        """Let the jobs of processes that are gone go on: here, or wherever there is room."""
        with self.gallery.database.reading() as connection:
            everyone = executors.everyone(connection)
        others = [one for one in everyone if one.id != self.me.id]
        silent = self._silence.of(others)
        dead = [one for one in others if one.id in silent or _gone(one)]
        if dead:
            DBOS._recover_pending_workflows([one.id for one in dead])  # noqa: SLF001 - its service calls the same
        # A device may come back: its jobs stay with it until it has been silent for long.
        if silent:
            with self.gallery.database.writing() as connection:
                self.gallery.database.alone(connection, CLAIMS)
                executors.forget(connection, [*silent])
                left = {one.device for one in executors.everyone(connection) if one.device}
                lost = queue.release(connection, left)
            DBOS.cancel_workflows([job.workflow for job in lost]) if lost else None

    def _give_up(self) -> None:
        """Jobs that nobody will end: each has killed its process too often, or is another version's."""
        if time.monotonic() < self._next_review:
            return
        self._next_review = time.monotonic() + REVIEW
        with self.gallery.database.reading() as connection:
            found = {job.workflow: job for job in queue.begun(connection)}
            there = [one for one in executors.everyone(connection) if not _gone(one)]
        idents, versions = {one.id for one in there}, {one.version for one in there}
        for workflow in DBOS.list_workflows(workflow_ids=[*found], load_input=False) if found else []:
            job = found[workflow.workflow_id]
            if workflow.status in OVER:
                self.fail(job, problem(ServiceError("gave-up", job=job.id, status=workflow.status)))
            elif workflow.app_version not in versions:
                self._anew(job, f"version {workflow.app_version} of its workflow is gone")
            elif workflow.status == "PENDING" and workflow.executor_id not in idents:
                DBOS._recover_pending_workflows([str(workflow.executor_id)])  # noqa: SLF001 - as above

    def _anew(self, job: Job, says: str) -> None:
        """Begin a job from its start: its steps so far are another version's."""
        with self.gallery.database.writing() as connection:
            taken = queue.anew(connection, job, says)
        if taken:
            DBOS.cancel_workflows([job.workflow])
            self.hurry()

    def _claim(self) -> None:
        """Take the oldest validation that this process can run, if its device has nothing to do."""
        from importer.service.jobs.workflows import validate_config

        if self.device is None:
            return
        with self.gallery.database.writing() as connection:
            self.gallery.database.alone(connection, CLAIMS)
            job = queue.claim(connection, self.device, self.me.can)
        if job is not None:
            with SetWorkflowID(job.workflow):
                DBOS.enqueue_workflow(_queue(self.device), validate_config, job.id, job.attempt)
            self._enqueued([job])

    def _forget(self) -> None:
        """Drop answers that were kept for as long as they are."""
        if time.monotonic() < self._next_forgetting:
            return
        self._next_forgetting = time.monotonic() + FORGET
        with self.gallery.database.writing() as connection:
            answers.forget(connection)

    def _enqueued(self, found: Sequence[Job]) -> None:
        with self.gallery.database.writing() as connection:
            for job in found:
                queue.enqueued(connection, job)

    def _queues(self) -> list[str]:
        names = [IMPORTS] if self.settings.imports else []
        return names if self.device is None else [*names, _queue(self.device)]

    def _engines(self) -> tuple[str, ...]:
        return tuple(name for name in (*ENGINES, *CHOSEN) if _there(name)) if self.settings.validate else ()

    def _memory(self, own: Device) -> int | None:
        return devices.size(self.settings.memory) if self.settings.memory else own.memory


def _gone(one: Executor) -> bool:
    return gone(one.place, one.pid, one.born)


def _there(name: str) -> bool:
    try:
        return install.find(get(name)) is not None
    except EngineError:
        return False


def _queue(device: str) -> str:
    return f"device:{device}"


def _durable(url: URL) -> str:
    """Where DBOS keeps its own: beside an SQLite file, so that neither waits for the other's writers."""
    if url.get_backend_name() == "sqlite":
        path = f"{url.database}.jobs"
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA journal_mode=WAL")  # stays with the file: readers wait for nobody
        return f"sqlite:///{path}"
    return str(url.render_as_string(hide_password=False))


def _join_logs() -> None:
    """What DBOS logs goes where all else goes; a workflow that was cancelled or left is no error."""
    logger = logging.getLogger("dbos")
    logger.handlers = logger.handlers or [logging.NullHandler()]
    logger.propagate = True
    logger.addFilter(_worth_telling)


def _worth_telling(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    left = _crew is None  # this process ends, and another one goes on with what it had
    return kind is None or not (left or "Cancelled" in kind.__name__)


def _stop_all(found: Sequence[Running], *, leave: bool = False) -> list[threading.Thread]:
    """Stop jobs side by side: an engine may take seconds to end."""
    threads = [threading.Thread(target=one.stop, kwargs={"leave": leave}, daemon=True) for one in found]
    for thread in threads:
        thread.start()
    return threads
