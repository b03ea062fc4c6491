"""The steps of a validation on a pool: the run's id is kept first, then it is submitted and followed.

What jobs on pools leave at the far end, removed after each of them has ended, also after kills.

The end of such a job leaves a row in the same transaction. A run is ended by the process that followed it, so
that none is submitted behind it; where that process is gone, by any other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from sqlalchemy.exc import SQLAlchemyError

from importer import launchers
from importer.app.remote import RemoteOptions, measured_at, report_of, task_of
from importer.config_file.store import StoredDocument
from importer.errors import DocumentError, ImporterError
from importer.launchers.base import RemoteRun, RemoteTask
from importer.launchers.follow import PATIENCE, end
from importer.progress import Progress
from importer.service.domain.gallery import Gallery
from importer.service.domain.validations import pool
from importer.service.jobs.live_jobs import LiveJob, LiveJobs
from importer.service.jobs.steps import Result, Results, Step
from importer.service.jobs.validation_steps import ValidationSteps, admitted, measures
from importer.service.settings import Settings
from importer.storage import jobs, processes
from importer.storage.database import Database, driver_message
from importer.storage.jobs import Remains
from importer.storage.processes import Executor


class PoolSteps:
    """The same steps as those of a validation here, so that clients see one kind of job."""

    def __init__(self, gallery: Gallery, settings: Settings, here: ValidationSteps) -> None:
        self._gallery, self._settings, self._here = gallery, settings, here

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the steps by name, in their order."""
        return {"weights": self.name, "run": self.run, "store": self._here.store}

    def name(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Return the id of the run, which is recorded before anything is submitted; fetch nothing here."""
        job = live.job
        del progress
        with self._gallery.checkout() as folder:
            stored = admitted(folder, job)
            run = f"importer-{job.id}-{job.attempt}"
            self._task(run, stored, live)  # what cannot be sent fails before it has an id
            return {"remote": run, "on": job.request["on"], "digest": stored.digest, "since": time.time()}

    def run(self, live: LiveJob, results: Results, progress: Progress) -> Result:
        """Submit the run once, follow it, and return its report."""
        job, known = live.job, results["weights"]
        target = pool(self._settings, str(known["on"])).target
        with self._gallery.checkout() as folder:
            stored = admitted(folder, job)
            if stored.digest != known["digest"]:
                now = {"now": stored.digest, "seen": known["digest"]}
                raise DocumentError("changed", path=stored.path.name, name=stored.name, **now)
            report = report_of(
                target, self._task(str(known["remote"]), stored, live), stored, progress,
                queue_seconds=self._settings.pool_wait, since=float(known["since"]),
                patience=PATIENCE, check=live.check, measure=measures(job),
            )  # fmt: skip
        live.check()
        if measures(job):
            return {"digest": stored.digest, "measured": measured_at(report).to_json()}
        return {"digest": stored.digest, "report": report}

    def _task(self, run: str, stored: StoredDocument, live: LiveJob) -> RemoteTask:
        request = live.job.request
        options = RemoteOptions(
            fetch=bool(request["fetch"]), score=int(bool(request.get("score"))), measure=measures(live.job)
        )
        target = pool(self._settings, str(request["on"])).target
        return task_of(run, stored, str(live.job.engine), target, options)


LOG = logging.getLogger(__name__)
LOOK, LATER = 2.0, 60.0  # seconds between two looks, and until a cluster that failed is asked again
GIVEN_UP = 86_400.0  # seconds after which a cluster is no longer asked


class PoolCleanup:
    """Removes what is left on the pools that this process knows."""

    def __init__(
        self, database: Database, settings: Settings, live: LiveJobs, me: Executor,
        exited: Callable[[Executor], bool],
    ) -> None:  # fmt: skip
        self._database, self._settings, self._live, self._me = database, settings, live, me
        self._exited, self._later = exited, dict[Remains, float]()

    def run(self, ending: threading.Event) -> None:
        """Look for what is left until the process ends."""
        while not ending.wait(LOOK):
            try:
                self.look()
            except SQLAlchemyError as error:  # the next look tries again
                LOG.warning("nothing was removed from pools: %s", driver_message(error))

    def look(self) -> None:
        """Remove what can be removed now."""
        with self._database.reading() as connection:
            found = jobs.all_remains(connection)
            others = processes.all_executors(connection) if found else []
        alive = {one.id for one in others if one.id != self._me.id and not self._exited(one)}
        for one in found:
            if one.held in alive or (one.held == self._me.id and one.job in self._live.all()):
                continue
            if time.monotonic() >= self._later.get(one, 0.0):
                self._remove(one)

    def _remove(self, one: Remains) -> None:
        try:
            target = pool(self._settings, one.on).target
            end(launchers.get(target), RemoteRun.of(one.remote, target))
        except ImporterError as error:
            LOG.warning("the run %s is not removed: %s", one.remote, error.sentence())
            if time.time() - one.since < GIVEN_UP:
                self._later[one] = time.monotonic() + LATER
                return
        self._later.pop(one, None)
        with self._database.writing() as connection:
            jobs.forget(connection, one)
