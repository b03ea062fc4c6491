"""The three steps of a validation: weights, run, and the report in the receipt."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from importer import config as places
from importer.app.local_evidence import recorded_proof
from importer.app.measure import for_a_device, measure, plan_measured, settle
from importer.app.session import ImportSession
from importer.app.validate import record, run_document, weights_of
from importer.document.store import StoredDocument
from importer.engines import get, install
from importer.hub.local import AllowedFolders
from importer.hub.weights import readable
from importer.memory.measured import Measured
from importer.progress import Progress
from importer.reasons import Reason
from importer.sentences import render
from importer.service.domain.gallery import Checkout, Gallery
from importer.service.domain.grants import need_approval
from importer.service.jobs.live_jobs import LiveJob, Result, Results, Step, Stopped
from importer.storage import jobs
from importer.storage.audit import AuditContext
from importer.storage.jobs import Job
from importer.validation.probe import ProbeOptions

LOOK = 0.2  # seconds between two looks at a device that another process has


class ValidationSteps:
    """The steps of a validation job. Each may be run again: the last report counts."""

    def __init__(self, gallery: Gallery, device: str, places: AllowedFolders, bench: ImportSession) -> None:
        self._gallery, self._device, self._places, self._bench = gallery, device, places, bench

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the steps by name, in their order."""
        return {"weights": self.weights, "run": self.run, "store": self.store}

    def weights(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Find the weights on this disk, or fetch them."""
        job = live.job
        install.need(get(str(job.engine)))
        with self._gallery.checkout() as folder:
            stored = admitted(folder, job)
            path = "" if measures(job) else str(self._weights(stored, job, progress))
        return {"weights": path, "digest": stored.digest}

    def run(self, live: LiveJob, results: Results, progress: Progress) -> Result:
        """Serve and probe on the device, which no other job uses meanwhile."""
        job, known = live.job, results["weights"]
        if measures(job):
            return self._measure(live, progress)
        with device(self._device, progress, live.check) as lock, self._gallery.checkout() as folder:
            stored = admitted(folder, job)
            path = readable(Path(known["weights"]), self._places)
            if path is None or stored.digest != known["digest"]:  # another process, or an edit
                path = self._weights(stored, job, progress)
            if isinstance(unread := recorded_proof(stored), Reason):
                progress(render(unread))
            options = ProbeOptions.of(progress, thorough=bool(job.request.get("thorough")))
            report = run_document(
                stored, str(job.engine), path, self._places, options, watch=live.serves, hold=[lock]
            )
        live.check()
        return {"digest": stored.digest, "report": report}

    def _measure(self, live: LiveJob, progress: Progress) -> Result:
        """Start with random weights on the device, and return what the engine reported."""
        with device(self._device, progress, live.check) as lock, self._gallery.checkout() as folder:
            stored = admitted(folder, live.job)
            started = for_a_device(stored, folder, self._bench, self._places)
            found = measure(
                started, str(live.job.engine), self._places, progress=progress, watch=live.serves, hold=[lock]
            )
        live.check()
        return {"digest": stored.digest, "measured": found.to_json()}

    def _weights(self, stored: StoredDocument, job: Job, progress: Progress) -> Path:
        fetch = bool(job.request["fetch"])
        return weights_of(stored, None, self._places, fetch=fetch, progress=progress)

    def store(self, live: LiveJob, results: Results, _: Progress) -> Result:
        """Write the report to the receipt and end the job, in one transaction."""
        if measures(live.job):
            return self._settle(live.job, Measured.from_json(results["run"]["measured"]))
        job, report, digest = live.job, results["run"]["report"], results["run"]["digest"]
        name = str(job.config)
        with self._gallery.change(AuditContext(job.by, "validate", None, job.id)) as change:
            record(report, change.checkout, name, digest)
            saved = change.save(name)
            result = {
                "name": name, "passed": report["passed"], "engine": report["engine"], "digest": digest,
                "version": saved.version, "state": saved.state, "config": f"/v1/configs/{name}",
                "probes": _counted(report["outcomes"]), "seconds": report["seconds"],
                "speed": report.get("speed") or {},
            }  # fmt: skip
            if not jobs.end(change.connection, job, "succeeded", result=result):
                raise Stopped
        return result

    def _settle(self, job: Job, found: Measured) -> Result:
        """Choose the settings by a measurement, write them and end the job, in one transaction."""
        name = str(job.config)
        with self._gallery.checkout() as folder:
            planned = plan_measured(folder.load(name), found, folder, self._bench, self._places)
        with self._gallery.change(AuditContext(job.by, "measure", None, job.id)) as change:
            settled = settle(planned, change.checkout)
            saved = change.save(name)
            result = {
                "name": name, "engine": {"name": found.engine, "version": found.version},
                "digest": saved.digest, "version": saved.version, "state": saved.state,
                "config": f"/v1/configs/{name}", "written": change.wrote(name),
                "measured": found.to_json(), "fit": settled.plan.fit.message,
            }  # fmt: skip
            if not jobs.end(change.connection, job, "succeeded", result=result):
                raise Stopped
        return result


def measures(job: Job) -> bool:
    """Return whether a job measures the memory, in place of a validation."""
    return bool(job.request.get("measure"))


def admitted(folder: Checkout, job: Job) -> StoredDocument:
    """Return the present document, if it may be run.

    Raises DocumentError and ServiceError("code-not-approved").
    """
    stored = folder.load(str(job.config))
    stored.check()
    need_approval(stored)
    return stored


def _counted(rows: Sequence[Mapping[str, str]]) -> dict[str, int]:
    outcomes = [row["outcome"] for row in rows]
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}


@contextmanager
def device(name: str, progress: Progress, check: Callable[[], None]) -> Iterator[int]:
    """Yield the lock of a device, once no other process of this machine holds it.

    The lock is free when all its holders have exited. An engine's supervisor inherits it, so that the device
    is not free before the engine has exited.
    """
    path = places.home() / "devices" / f"{re.sub(r'[^a-z0-9.-]', '-', name.lower())}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(descriptor):
            progress(f"waiting for {name}, which another process has")
            check()
            time.sleep(LOOK)
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
