"""The one step of a recheck: each document is compared with an import now, and its outcome is recorded."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from importer.app.recheck import Rechecked, RecheckFinding, recheck_plan
from importer.app.recheck_upstream import CauseKind
from importer.app.session import ImportSession
from importer.config_file.store import StoredDocument
from importer.errors import DocumentError, HubError, ImporterError, InternalError
from importer.hub.pacing import Budget, under
from importer.progress import Progress
from importer.progress import Step as Part
from importer.service import upkeep
from importer.service.api.problems import problem
from importer.service.gallery import Gallery
from importer.service.jobs.live_jobs import LiveJob, Stopped
from importer.service.jobs.steps import Results, Step
from importer.service.settings import Settings
from importer.storage import findings, jobs, queue, webhooks
from importer.storage.jobs import Job

AT_ONCE = 50  # documents in one look
GONE = ("not-found", "revision-not-found", "private", "gated", "forbidden")  # of the model, not of the Hub
LOG = logging.getLogger(__name__)


def _gone(stored: StoredDocument, error: HubError) -> Rechecked:
    """Return the finding that the model can no longer be imported."""
    request = {} if stored.receipt is None else stored.receipt.request or {}
    return Rechecked(RecheckFinding(stored.name, stored.model, request, refused=error))


class RecheckSteps:
    """The step of a recheck. A document with an outcome is not compared again, also by another process."""

    def __init__(self, gallery: Gallery, bench: ImportSession, settings: Settings) -> None:
        self._gallery, self._bench, self._settings = gallery, bench, settings

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the step by its name."""
        return {"compare": self.compare}

    def compare(self, live: LiveJob, _: Results, progress: Progress) -> Results:
        """Compare the documents that have no outcome, one after the other, and end the job."""
        job, budget = live.job, Budget()
        total, done = int(job.request["documents"]), self._done(job)
        while left := self._waiting(job):
            for name in left:
                live.check()
                with under(budget, progress):
                    self._one(job, name)
                done += 1
                progress(Part(f"{done} of {total}: {name}", done, total))
        with self._gallery.database.writing() as connection:
            result = {"documents": total, "outcomes": findings.outcomes(connection, job.id)}
            if not jobs.end(connection, job, "succeeded", result=result):
                raise Stopped
        return result

    def _waiting(self, job: Job) -> list[str]:
        with self._gallery.database.reading() as connection:
            return findings.waiting(connection, job.id, AT_ONCE)

    def _done(self, job: Job) -> int:
        with self._gallery.database.reading() as connection:
            return sum(n for what, n in findings.outcomes(connection, job.id).items() if what != "waiting")

    def _one(self, job: Job, name: str) -> None:
        """Compare one document; its failure costs the others nothing."""
        try:
            self._compare(job, name)
        except SQLAlchemyError:
            raise
        except DocumentError as error:
            gone = error.kind == "no-such-document"
            self._failed(job, name, "gone" if gone else "failed", problem(error))
        except ImporterError as error:
            self._failed(job, name, "failed", problem(error))
        except Exception as error:
            LOG.exception("the recheck of %s failed", name)
            internal = InternalError("internal", problem=f"{type(error).__name__}: {error}")
            self._failed(job, name, "failed", problem(internal))

    def _compare(self, job: Job, name: str) -> None:
        with self._gallery.checkout() as folder:
            places = self._settings.places
            try:
                found = recheck_plan(folder, name, self._bench, places)
            except HubError as error:
                if error.kind not in GONE:
                    raise
                found = _gone(folder.load(name), error)
            finding, version = found.finding, folder.fetched[name].number
            summary, kinds = upkeep.summary_of(finding), [*finding.kinds]
            proposals: dict[str, dict[str, Any]] = {}
            if found.plan is not None and finding.changed:
                try:
                    proposals = upkeep.propose(found.plan, folder, bool(finding.conflicts))
                except DocumentError as error:  # such as a chat template that a person has changed
                    summary["refused"] = upkeep.worded(error)
                    kinds.append(CauseKind.REFUSED)
        with self._gallery.database.writing() as connection:
            if queue.lost(connection, [job]):
                raise Stopped
            if not finding.changed:
                findings.resolve(connection, name)
                findings.compared(connection, job.id, name, "unchanged")
                return
            mark = upkeep.fingerprint(summary)
            ident, outcome = findings.record(
                connection, name, version, mark, kinds, summary, proposals, job.id
            )
            findings.compared(connection, job.id, name, outcome, ident)
            if outcome == "found":
                subject = {"finding": ident, "name": name, "causes": kinds, "job": job.id}
                webhooks.enqueue(connection, "finding.opened", subject)

    def _failed(self, job: Job, name: str, outcome: findings.Outcome, details: Mapping[str, Any]) -> None:
        with self._gallery.database.writing() as connection:
            findings.compared(connection, job.id, name, outcome, error=details)
