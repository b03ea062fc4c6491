"""The one step of a recheck: each document is compared with an import now, and its outcome is recorded.

A document of the gallery beside itself for another version of its engine: what waits for a person.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from importer.app import upgrade_versions
from importer.app.recheck import CauseKind, ChangeCause, Rechecked, RecheckFinding, recheck_plan
from importer.app.session import ImportSession
from importer.app.upgrade import Judged, Upgrade, Upgraded, absent_here
from importer.config_file.document_keys import differences, digest
from importer.config_file.merge import Take
from importer.config_file.review import change_json
from importer.config_file.store import Store, StoredDocument
from importer.errors import DocumentError, HubError, ImporterError, UsageError, described
from importer.frozen import frozen
from importer.hub.local import AllowedFolders
from importer.hub.rate_limit import Budget, under
from importer.progress import Progress
from importer.progress import Step as Part
from importer.service.domain import upkeep
from importer.service.domain.failures import failure
from importer.service.domain.gallery import Checkout, Gallery
from importer.service.jobs.live_jobs import LiveJob, Result, Results, Step, Stopped
from importer.service.settings import Settings
from importer.storage import findings, jobs, queue
from importer.storage.findings import Proposal
from importer.storage.jobs import Failure, Job


@frozen
class FoundChange:
    """What a comparison found: the version of the working copy, the finding and its proposals."""

    version: int
    summary: Mapping[str, object]
    kinds: Sequence[CauseKind]
    proposals: Mapping[str, Proposal]


class UpgradeComparison:
    """Comparisons of one job, for one version of an engine; equal documents are decided once."""

    def __init__(self, engine: str, bench: ImportSession, places: AllowedFolders) -> None:
        after = upgrade_versions.named(engine)
        self._upgrade = Upgrade(after, bench, Store(Path()), places)

    def compare(self, folder: Checkout, name: str) -> FoundChange | None:
        """Return what the version changes; ``None`` for a document of that version, or of another engine.

        Raises ImporterError.
        """
        upgraded = self._upgrade.judge(name, folder)
        found = upgraded.found
        if found.judged in (Judged.THERE, Judged.ELSEWHERE):
            return None
        summary, kinds = upkeep.summary_of(found.finding), [*found.kinds]
        proposals: dict[str, Proposal] = {}
        if found.left:
            summary["refused"] = upkeep.worded(_refusal(upgraded, found.left[0]))
        elif found.finding.refused is None:
            sides: Sequence[Take | None] = upkeep.SIDES if found.finding.conflicts else (None,)
            try:
                proposals = {side or upkeep.ANY: _proposal(upgraded, folder, side) for side in sides}
            except DocumentError as error:
                summary["refused"] = upkeep.worded(error)
        if summary["refused"] is not None and CauseKind.REFUSED not in kinds:
            kinds.append(CauseKind.REFUSED)
        return FoundChange(folder.fetched[name].number, summary, kinds, proposals)


def _refusal(upgraded: Upgraded, cause: ChangeCause) -> ImporterError:
    """Return why the document cannot be written for the version as it is."""
    if cause.why is not None:
        return DocumentError("invalid", path=upgraded.stored.path.name, problem=cause.why)
    moved = upgraded.moved
    version = "" if moved is None else moved.after.version
    field = ", ".join(cause.keys or ()).replace("_", " ")
    return UsageError(
        "unknown-parser", engine=upgraded.stored.backend, version=version, field=field, name=cause.before,
        near="",
    )  # fmt: skip


def _proposal(upgraded: Upgraded, folder: Checkout, take: Take | None) -> Proposal:
    """Return the files of the working copy for the version."""
    written = upgraded.write(take)
    changes = differences(upgraded.stored.data, written.data)
    return {
        "text": written.text, "receipt": written.receipt.to_text(),
        "template": folder.now(upgraded.stored.name).template, "digest": digest(written.data),
        "changes": [change_json(change) for change in changes],
    }  # fmt: skip


AT_ONCE = 50  # documents in one look
GONE = ("not-found", "revision-not-found", "private", "gated", "forbidden")  # of the model, not of the Hub
LOG = logging.getLogger(__name__)


def _gone(stored: StoredDocument, error: HubError) -> Rechecked:
    """Return the finding that the model can no longer be imported."""
    request = {} if stored.receipt is None else stored.receipt.request
    return Rechecked(RecheckFinding(stored.name, stored.model, request, refused=error))


class RecheckSteps:
    """The step of a recheck. A document with an outcome is not compared again, also by another process."""

    def __init__(self, gallery: Gallery, bench: ImportSession, settings: Settings) -> None:
        self._gallery, self._bench, self._settings = gallery, bench, settings

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the step by its name."""
        return {"compare": self.compare}

    def compare(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Compare the documents that have no outcome, one after the other, and end the job.

        For another version of an engine, a document without a snapshot waits for equal ones: they are last.
        """
        job, budget = live.job, Budget()
        total, done = int(job.request["documents"]), self._done(job)
        engine = job.request.get("engine")
        upgrade = None if engine is None else UpgradeComparison(engine, self._bench, self._settings.places)
        later: list[str] = []
        while left := [*self._waiting(job, later)] or later:
            last = left is later
            for name in [*left]:
                live.check()
                with under(budget, progress):
                    compared = self._one(job, name, upgrade, last=last)
                if compared:
                    done += 1
                    progress(Part(f"{done} of {total}: {name}", done, total))
                else:
                    later.append(name)
            if last:
                break
        with self._gallery.database.writing() as connection:
            result = {"documents": total, "outcomes": findings.outcomes(connection, job.id)}
            if not jobs.end(connection, job, "succeeded", result=result):
                raise Stopped
        return result

    def _waiting(self, job: Job, later: list[str]) -> list[str]:
        with self._gallery.database.reading() as connection:
            names = findings.waiting(connection, job.id, AT_ONCE + len(later))
        return [name for name in names if name not in {*later}]

    def _done(self, job: Job) -> int:
        with self._gallery.database.reading() as connection:
            return sum(n for what, n in findings.outcomes(connection, job.id).items() if what != "waiting")

    def _one(self, job: Job, name: str, upgrade: UpgradeComparison | None, *, last: bool) -> bool:
        """Compare one document; return whether it has an outcome. Its failure costs the others nothing."""
        try:
            if upgrade is None:
                self._compare(job, name)
            else:
                self._upgrade(job, name, upgrade)
        except SQLAlchemyError:
            raise
        except DocumentError as error:
            gone = error.kind == "no-such-document"
            self._failed(job, name, "gone" if gone else "failed", failure(error))
        except Exception as error:
            if not isinstance(error, ImporterError):
                LOG.exception("the recheck of %s failed", name)
            elif upgrade is not None and not last and absent_here(error):
                return False
            self._failed(job, name, "failed", failure(described(error)))
        return True

    def _upgrade(self, job: Job, name: str, upgrade: UpgradeComparison) -> None:
        with self._gallery.checkout() as folder:
            compared = upgrade.compare(folder, name)
        if compared is None:
            with self._gallery.database.writing() as connection:
                findings.compared(connection, job.id, name, "unchanged")
            return
        self._record(job, name, compared)

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
            proposals: dict[str, Proposal] = {}
            if found.plan is not None and finding.changed:
                try:
                    proposals = upkeep.propose(found.plan, folder, bool(finding.conflicts))
                except DocumentError as error:  # such as a chat template that a person has changed
                    summary["refused"] = upkeep.worded(error)
                    kinds.append(CauseKind.REFUSED)
        if finding.changed:
            self._record(job, name, FoundChange(version, summary, kinds, proposals))
            return
        with self._gallery.database.writing() as connection:
            if queue.lost(connection, [job]):
                raise Stopped
            findings.resolve(connection, name)
            findings.compared(connection, job.id, name, "unchanged")

    def _record(self, job: Job, name: str, found: FoundChange) -> None:
        """Put a change into the queue, with its event, in one transaction."""
        with self._gallery.database.writing() as connection:
            if queue.lost(connection, [job]):
                raise Stopped
            mark = upkeep.fingerprint(found.summary)
            ident, outcome = findings.record(
                connection, name, found.version, mark, found.kinds, found.summary, found.proposals, job.id
            )
            findings.compared(connection, job.id, name, outcome, ident)

    def _failed(self, job: Job, name: str, outcome: findings.Outcome, details: Failure) -> None:
        with self._gallery.database.writing() as connection:
            findings.compared(connection, job.id, name, outcome, error=details)
