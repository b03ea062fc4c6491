"""The one step of a recheck: each document is compared with an import now, and its outcome is recorded."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sqlalchemy.exc import SQLAlchemyError

from importer.app.recheck import Rechecked, recheck
from importer.app.session import ImportSession
from importer.errors import DocumentError, HubError, ImporterError, described
from importer.hub.rate_limit import Budget, under
from importer.progress import Progress
from importer.progress import Step as Part
from importer.service import messages
from importer.service.domain.failures import failure
from importer.service.domain.gallery import Gallery
from importer.service.jobs.live_jobs import LiveJob, Result, Results, Step, Stopped
from importer.service.settings import Settings
from importer.storage import jobs, queue, rechecks
from importer.storage.jobs import Job

AT_ONCE = 50  # documents in one look
GONE = ("not-found", "revision-not-found", "private", "gated", "forbidden")  # of the model, not of the Hub
LOG = logging.getLogger(__name__)


class RecheckSteps:
    """The step of a recheck. A document with an outcome is not compared again, also by another process."""

    def __init__(self, gallery: Gallery, bench: ImportSession, settings: Settings) -> None:
        self._gallery, self._bench, self._settings = gallery, bench, settings

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the step by its name."""
        return {"compare": self.compare}

    def compare(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Compare the documents that have no outcome, one after the other, and end the job."""
        job, budget, database = live.job, Budget(), self._gallery.database
        total, done = int(job.request["documents"]), self._done(job)
        while names := self._waiting(job):
            for name in names:
                live.check()
                with under(budget, progress):
                    self._one(job, name)
                done += 1
                progress(Part(f"{done} of {total}: {name}", done, total))
        with database.writing() as connection:
            result = {"documents": total, "outcomes": rechecks.outcomes(connection, job.id)}
            if not jobs.end(connection, job, "succeeded", result=result):
                raise Stopped
        return result

    def _waiting(self, job: Job) -> list[str]:
        with self._gallery.database.reading() as connection:
            return rechecks.waiting(connection, job.id, AT_ONCE)

    def _done(self, job: Job) -> int:
        with self._gallery.database.reading() as connection:
            return sum(n for what, n in rechecks.outcomes(connection, job.id).items() if what != "waiting")

    def _one(self, job: Job, name: str) -> None:
        """Compare one document, and record its outcome. Its failure costs the others nothing."""
        try:
            self._compare(job, name)
        except (SQLAlchemyError, Stopped):
            raise
        except Exception as error:
            if not isinstance(error, ImporterError):
                LOG.exception("the recheck of %s failed", name)
            gone = isinstance(error, DocumentError) and error.kind == "no-such-document"
            with self._gallery.database.writing() as connection:
                outcome: rechecks.Outcome = "gone" if gone else "failed"
                rechecks.record(connection, job.id, name, outcome, error=failure(described(error)))

    def _compare(self, job: Job, name: str) -> None:
        with self._gallery.checkout() as folder:
            version = job.request.get("engine_version")
            try:
                found = recheck(folder, name, self._bench, self._settings.places, engine_version=version)
            except HubError as error:
                if error.kind not in GONE:
                    raise
                found = Rechecked(name, None, {}, refused=error)
            number = folder.fetched[name].number
        with self._gallery.database.writing() as connection:
            self._gallery.database.alone(connection)
            if queue.lost(connection, [job]):
                raise Stopped
            outcome: rechecks.Outcome = "differs" if found.changed else "unchanged"
            outcome = "left-out" if found.left_out else outcome
            told = None if outcome == "unchanged" else found.to_json(_worded)
            rechecks.record(connection, job.id, name, outcome, number, told)


def _worded(error: ImporterError) -> dict[str, object]:
    """Return a failure's kind, message and next step."""
    return {"kind": error.kind, "message": messages.detail(error), "hint": messages.hint(error)}
