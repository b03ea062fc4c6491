"""The steps of a validation on a pool: the run's id is kept first, then it is submitted and followed."""

from __future__ import annotations

import time
from collections.abc import Mapping

from importer.app.remote import RemoteOptions, report_of, task_of
from importer.config_file.store import StoredDocument
from importer.errors import DocumentError
from importer.launchers.base import RemoteTask
from importer.launchers.follow import PATIENCE
from importer.progress import Progress
from importer.service.domain.gallery import Gallery
from importer.service.domain.pools import pool
from importer.service.jobs.live_jobs import LiveJob
from importer.service.jobs.steps import Results, Step
from importer.service.jobs.validation_steps import ValidationSteps, admitted
from importer.service.settings import Settings


class PoolSteps:
    """The same steps as those of a validation here, so that clients see one kind of job."""

    def __init__(self, gallery: Gallery, settings: Settings, here: ValidationSteps) -> None:
        self._gallery, self._settings, self._here = gallery, settings, here

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the steps by name, in their order."""
        return {"weights": self.name, "run": self.run, "store": self._here.store}

    def name(self, live: LiveJob, _: Results, progress: Progress) -> Results:
        """Return the id of the run, which is recorded before anything is submitted; fetch nothing here."""
        job = live.job
        del progress
        with self._gallery.checkout() as folder:
            stored = admitted(folder, job)
            run = f"importer-{job.id}-{job.attempt}"
            self._task(run, stored, live)  # what cannot be sent fails before it has an id
            return {"remote": run, "on": job.request["on"], "digest": stored.digest, "since": time.time()}

    def run(self, live: LiveJob, results: Results, progress: Progress) -> Results:
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
                patience=PATIENCE, check=live.check,
            )  # fmt: skip
        live.check()
        return {"digest": stored.digest, "report": report}

    def _task(self, run: str, stored: StoredDocument, live: LiveJob) -> RemoteTask:
        request = live.job.request
        options = RemoteOptions(fetch=bool(request["fetch"]), score=int(bool(request.get("score"))))
        target = pool(self._settings, str(request["on"])).target
        return task_of(run, stored, str(live.job.engine), target, options)
