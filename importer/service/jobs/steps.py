"""Run the steps of a job in order: the result of each is recorded, and a recorded step is not run again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy.exc import OperationalError, SQLAlchemyError

from importer import tracing
from importer.errors import ImporterError, described
from importer.progress import Progress
from importer.progress import Step as ProgressStep
from importer.service import telemetry
from importer.service.domain.failures import failure
from importer.service.jobs.live_jobs import LiveJob, Stopped
from importer.storage import jobs, queue
from importer.storage.database import Database, driver_message

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
        self._span = tracing.OpenSpan()

    def run(self, steps: Mapping[str, Step]) -> None:
        """Run the steps that are not recorded; an error of a step ends the job.

        The job stays leased where the database is away for long: the runner gives it back.
        """
        job = self._job
        with (
            telemetry.of_job(job.id),
            tracing.span(
                f"job {job.kind}", parent=job.trace, importer__job=job.id, importer__attempt=job.attempt
            ) as self._span,
        ):
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
        with tracing.span(f"step {name}", importer__job=self._job.id):
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
        self._span.failed(details["kind"])
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
