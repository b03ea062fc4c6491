"""The four steps of an import: the commit, the analysis and decisions, the proof, and the document."""

from __future__ import annotations

from collections.abc import Mapping

from importer.app.decide import Decided, finalize, prove_studied
from importer.app.import_ import build_plan, merge_plan, write
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.app.study import Studied, study_snapshot
from importer.document.name_allocator import Names
from importer.document.validation_state import carried
from importer.errors import ServiceError
from importer.hub import digests
from importer.hub.rate_limit import Budget, under
from importer.hub.snapshot import Snapshot
from importer.progress import Progress
from importer.proof.result import Proof
from importer.sentences import render
from importer.service.domain.gallery import Gallery
from importer.service.domain.import_request import Import, request_of, snapshot_of
from importer.service.jobs.live_jobs import LiveJob, Result, Results, Step, Stopped
from importer.service.settings import Settings
from importer.signals.architecture import architectures
from importer.signals.loading import LoadVerdict, takers
from importer.storage import jobs
from importer.storage.audit import AuditContext
from importer.storage.jobs import Job


class ImportSteps:
    """The steps of an import job. Each may be run again with the same result and no second effect."""

    def __init__(
        self, gallery: Gallery, bench: ImportSession, settings: Settings, budget: Budget | None = None
    ) -> None:
        self._gallery, self._bench, self._settings = gallery, bench, settings
        self._budget = Budget() if budget is None else budget

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return the steps by name, in their order."""
        return {"resolve": self.resolve, "decide": self.decide, "prove": self.prove, "store": self.store}

    def resolve(self, live: LiveJob, _: Results, progress: Progress) -> Result:
        """Resolve the reference to a commit; later steps read nothing else."""
        if live.snapshot is None:
            live.snapshot = self._resolve(self._request(live.job), None, progress)
        return {"model": live.snapshot.label, "commit": live.snapshot.revision}

    def decide(self, live: LiveJob, results: Results, progress: Progress) -> Result:
        """Decide the backend from files, tables and template; raises ServiceError("ambiguous")."""
        studied = self._studied(live, results, progress)
        need_choice(studied, self._settings)
        backend = studied.backend
        return {
            "backend": backend.value,
            "because": [render(w) for w in backend.why],
            "version": studied.target.version,
        }

    def prove(self, live: LiveJob, results: Results, progress: Progress) -> Result:
        """Prove the template against the engine's own parsers."""
        proof = prove_studied(self._studied(live, results, progress), self._bench, progress)
        return {"proof": None if proof is None else proof.to_json()}

    def store(self, live: LiveJob, results: Results, progress: Progress) -> Result:
        """Write the document to the gallery and end the job, in one transaction."""
        job, recorded = live.job, results["prove"]["proof"]
        proof = None if recorded is None else Proof.from_json(recorded)
        decided = finalize(self._studied(live, results, progress), proof, progress)
        digests.imported(decided.snapshot, progress)  # read before the lock, and kept for the receipt
        return save(self._gallery, job, Import.model_validate(job.request), decided)

    def _request(self, job: Job) -> ImportRequest:
        return request_of(Import.model_validate(job.request), self._settings)

    def _studied(self, live: LiveJob, results: Results, progress: Progress) -> Studied:
        """Return the analysis, made again where another process ran the first step."""
        if live.studied is None:
            request = self._request(live.job)
            snapshot = self._snapshot(live, request, results, progress)
            with self._gallery.checkout() as folder:
                request = request.after(Names(folder).known(snapshot, request.name, request.slot))
            live.studied = study_snapshot(snapshot, request, self._bench, progress)
        return live.studied

    def _snapshot(
        self, live: LiveJob, request: ImportRequest, results: Results, progress: Progress
    ) -> Snapshot:
        """Return the snapshot at the commit of the first step."""
        if live.snapshot is None:
            live.snapshot = self._resolve(request, results["resolve"]["commit"], progress)
        return live.snapshot

    def _resolve(self, request: ImportRequest, commit: str | None, progress: Progress) -> Snapshot:
        """Return the snapshot of the request, at ``commit`` where that is known."""
        with under(self._budget, progress):
            return snapshot_of(request, self._settings, commit)


def save(gallery: Gallery, job: Job, body: Import, decided: Decided) -> Result:
    """Write a document to the gallery and end its job, in one transaction."""
    with gallery.change(AuditContext(job.by, "import", body.note, job.id)) as change:
        planned = build_plan(decided, Names(change.checkout))
        settled = merge_plan(planned, change.checkout, body.take, body.on_conflict)
        write(settled, change.checkout)
        saved = change.save(planned.name)
        result: dict[str, object] = {
            "name": planned.name, "model": decided.model, "revision": decided.snapshot.revision,
            "backend": decided.target.backend, "version": saved.version, "state": saved.state,
            "digest": saved.digest, "written": change.wrote(planned.name),
            "config": f"/v1/configs/{planned.name}",
            "carried": carried(change.checkout.load(planned.name)),
            "warnings": [warning.to_json() for warning in settled.warnings],
        }  # fmt: skip
        if not jobs.end(change.connection, job, "succeeded", result=result, config=planned.name):
            raise Stopped
    return result


def need_choice(studied: Studied, settings: Settings) -> None:
    """Raise ServiceError("ambiguous") where several backends could serve the model and none was chosen."""
    from importer.app.target import machine_for
    from importer.engines import registries

    request, decided = studied.request, studied.backend
    if decided.status != "engine-default" or "backend" in request.preferences.unset:
        return
    machine = machine_for(request.for_device)
    verdicts = takers(studied.snapshot, machine, registries.load_capabilities)
    names = [name for name in verdicts if name in settings.backends]
    if len(names) < 2:
        return
    candidates = [
        {
            "backend": n,
            "engine": registries.load_capabilities(n).label,
            "message": _why(verdicts[n], studied.snapshot),
        }
        for n in names
    ]
    raise ServiceError(
        "ambiguous",
        reference=studied.snapshot.label,
        candidates=candidates,
        names=f"{', '.join(names[:-1])} and {names[-1]}",
    )


def _why(verdict: LoadVerdict, snapshot: Snapshot) -> str:
    """Return why an engine is a candidate, also where its verdict has no reason."""
    what = next(iter(architectures(snapshot)), "this model")
    plain_reason = (
        f"it serves {what}"
        if verdict.can
        else f"nothing is known against it; whether it serves {what} is not"
    )
    return plain_reason if verdict.reason is None else render(verdict.reason)
