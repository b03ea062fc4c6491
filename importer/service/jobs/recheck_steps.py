"""The one step of a recheck: the document is compared with an import now."""

from __future__ import annotations

from collections.abc import Mapping

from importer.app.recheck import Rechecked, recheck
from importer.app.session import ImportSession
from importer.errors import HubError, ImporterError
from importer.hub.rate_limit import Budget, under
from importer.progress import Progress
from importer.service import messages
from importer.service.domain.gallery import Checkout, Gallery
from importer.service.jobs.live_jobs import LiveJob, Result, Results, Step, Stopped
from importer.service.settings import Settings
from importer.storage import jobs, rechecks
from importer.storage.jobs import Job

GONE = ("not-found", "revision-not-found", "private", "gated", "forbidden")  # of the model, not of the Hub


class RecheckSteps:
    """The step of a recheck. It may be run again: the last comparison counts."""

    def __init__(self, gallery: Gallery, bench: ImportSession, settings: Settings, budget: Budget) -> None:
        self._gallery, self._bench, self._settings, self._budget = gallery, bench, settings, budget

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the step by its name."""
        return {"compare": self.compare}

    def compare(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Compare the document, record what an import would change and end the job, in one transaction."""
        job, name, database = live.job, str(live.job.config), self._gallery.database
        with under(self._budget, progress), self._gallery.checkout() as folder:
            found = self._recheck(folder, job)
            version = folder.fetched[name].number
        outcome = "left-out" if found.left_out else "differs" if found.changed else "unchanged"
        result = {"name": name, "outcome": outcome, "version": version, "config": f"/v1/configs/{name}"}
        with database.writing() as connection:
            database.alone(connection)
            if not jobs.end(connection, job, "succeeded", result=result):
                raise Stopped
            if not found.left_out:
                told = found.to_json(_worded) if found.changed else None
                rechecks.record(connection, job.id, name, version, told)
        return result

    def _recheck(self, folder: Checkout, job: Job) -> Rechecked:
        """Return the comparison; a model that is gone is a difference, a Hub that fails is none."""
        name, version = str(job.config), job.request.get("engine_version")
        try:
            return recheck(folder, name, self._bench, self._settings.places, engine_version=version)
        except HubError as error:
            if error.kind not in GONE:
                raise
            return Rechecked(name, None, {}, refused=error)


def _worded(error: ImporterError) -> dict[str, object]:
    """Return a failure's kind, message and next step."""
    return {"kind": error.kind, "message": messages.detail(error), "hint": messages.hint(error)}
