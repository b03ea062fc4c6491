"""An import in four steps: the commit, what the files say, what the parsers say, and the document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from importer.app.decide import ImportRequest, Progress, Studied, finalize, prove_studied, study_snapshot
from importer.app.import_ import build_plan, merge_plan, write
from importer.app.session import ImportSession
from importer.config_file.name_allocator import Names
from importer.errors import ServiceError
from importer.gallery import jobs
from importer.gallery.act import Act
from importer.gallery.gallery import Gallery
from importer.gallery.jobs import Job
from importer.hub import parse, resolve
from importer.hub.endpoint import Pace
from importer.hub.snapshot import Snapshot
from importer.messages import render
from importer.proof.result import Proof
from importer.service.api.request_models import Import, request_of
from importer.service.jobs.memory import Held, Running, Stopped
from importer.service.settings import Settings
from importer.signals.architecture import architectures
from importer.signals.backend import takers
from importer.signals.loading import LoadVerdict

Said = Mapping[str, Any]


class Importing:
    """The steps of an import job. Each may be done again: it gives the same, and nothing twice."""

    def __init__(self, gallery: Gallery, bench: ImportSession, settings: Settings, held: Held) -> None:
        self._gallery, self._bench, self._settings, self._held = gallery, bench, settings, held

    def resolve(self, job: Job, _: Said, progress: Progress) -> Said:
        """The commit that the reference stands for; from here on nothing else is looked at."""
        request, held = self._request(job), self._held.get(job.id)
        seen = self._held.brought(job.workflow)
        if seen is not None:
            held.snapshot, held.studied = seen.snapshot, seen
        else:
            reference, places = parse(request.reference, request.revision), self._settings.places
            held.snapshot = Pace(progress).keep(lambda: resolve(reference, places))
        return {"model": held.snapshot.label, "commit": held.snapshot.revision}

    def decide(self, job: Job, said: Said, progress: Progress) -> Said:
        """What files, tables and template say; raises ServiceError("ambiguous")."""
        studied = self._studied(job, said, progress)
        need_choice(studied, self._settings)
        backend = studied.backend
        return {
            "backend": backend.value,
            "because": [render(w) for w in backend.why],
            "version": studied.target.version,
        }

    def prove(self, job: Job, said: Said, progress: Progress) -> Said:
        """What the engine's own parsers make of the template."""
        proof = prove_studied(self._studied(job, said, progress), self._bench, progress)
        return {"proof": None if proof is None else proof.to_json()}

    def store(self, job: Job, said: Said, progress: Progress) -> Said:
        """The document in the gallery and the job's end, in one transaction."""
        kept = said["prove"]["proof"]
        proof = None if kept is None else Proof.from_json(kept)
        decided = finalize(self._studied(job, said, progress), proof, progress)
        asked = Import(**job.request)
        with self._gallery.change(Act(job.by, "import", asked.note, job.id)) as change:
            planned = build_plan(decided, Names(change.checkout))
            settled = merge_plan(planned, change.checkout, asked.take)
            write(settled, change.checkout)
            saved = change.save(planned.name)
            result = {
                "name": planned.name, "model": decided.model, "revision": decided.snapshot.revision,
                "backend": decided.target.backend, "version": saved.version, "state": saved.state,
                "digest": saved.digest, "written": change.wrote(planned.name),
                "config": f"/v1/configs/{planned.name}",
                "warnings": [warning.to_json() for warning in settled.warnings],
            }  # fmt: skip
            if not jobs.end(change.connection, job, "succeeded", result=result, config=planned.name):
                raise Stopped
        return result

    def _request(self, job: Job) -> ImportRequest:
        return request_of(Import(**job.request), self._settings)

    def _studied(self, job: Job, said: Said, progress: Progress) -> Studied:
        """As it is held, or once more after another process died."""
        held = self._held.get(job.id)
        if held.studied is None:
            request = self._request(job)
            snapshot = self._snapshot(held, request, said, progress)
            with self._gallery.checkout() as folder:
                request = request.after(Names(folder).known(snapshot, request.name))
            held.studied = study_snapshot(snapshot, request, self._bench, progress)
        return held.studied

    def _snapshot(self, held: Running, request: ImportRequest, said: Said, progress: Progress) -> Snapshot:
        """At the commit that the first step has found."""
        if held.snapshot is None:
            reference, places = parse(request.reference, request.revision), self._settings.places
            pinned = replace(reference, revision=said["resolve"]["commit"]) if reference.repo else reference
            held.snapshot = Pace(progress).keep(lambda: resolve(pinned, places))
        return held.snapshot


def need_choice(studied: Studied, settings: Settings) -> None:
    """Raises ServiceError("ambiguous") where several backends could take it and nobody has said which."""
    from importer.app.target import machine_for
    from importer.engines import capabilities

    request, decided = studied.request, studied.backend
    if decided.status != "engine-default" or "backend" in request.preferences.unset:
        return
    machine = machine_for(request.device)
    found = takers(studied.snapshot, machine, capabilities.load)
    names = [name for name in found if name in settings.backends]
    if len(names) < 2:
        return
    candidates = [
        {"backend": n, "engine": capabilities.load(n).label, "says": _why(found[n], studied.snapshot)}
        for n in names
    ]
    raise ServiceError(
        "ambiguous", reference=studied.snapshot.label, names=", ".join(names), candidates=candidates
    )


def _why(found: LoadVerdict, snapshot: Snapshot) -> str:
    """Why an engine is a candidate, also where its verdict has nothing to add."""
    what = next(iter(architectures(snapshot)), "this model")
    plainly = (
        f"it serves {what}" if found.can else f"nothing is known against it; whether it serves {what} is not"
    )
    return plainly if found.reason is None else render(found.reason)
