"""``/models`` and ``/backends`` as LocalAI has them."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.backends import of as backend_of
from importer.backends import serves
from importer.engines import registries
from importer.errors import ImporterError, ServiceError
from importer.service import localai, messages
from importer.service.desk import AtDesk, json_answer
from importer.service.http.editor import look_at_edit, turn
from importer.service.localai import Importer, Reader, import_request, status
from importer.service.security import act
from importer.storage import audit, jobs, processes, releases

# LocalAI's clients know these routes; docs/gallery.md has them, and our description does not.
router = APIRouter(tags=["localai"], route_class=localai.Envelope, include_in_schema=False)
NEWEST = 1000  # operations that are listed
HINT = "Pass preferences.backend to pick one of the candidates."


@router.post("/models/import-uri")
def import_uri(body: localai.ImportUri, request: Request, at: AtDesk, who: Importer) -> Response:
    """Analyse a model, then queue its import; the document is a draft at first."""
    try:
        import_body = import_request(body)
        with turn(at):
            studied = look_at_edit(import_body, at, who)
    except ImporterError as error:
        return _refused(error)
    with at.database.writing() as connection:
        job = jobs.create(connection, "import", import_body.model_dump(exclude_unset=True), who.name)
        audit.record(connection, act(request, who, "ask"), f"job {job.id}", {"imports": 1})
    at.runner.bring(job, studied)
    at_job = f"{at.base(request)}/models/jobs/{job.id}"
    return json_answer({"uuid": job.id, "status": at_job})


def _refused(error: ImporterError) -> Response:
    """Return the response to a failed import; an ambiguous one has an envelope with the candidates."""
    if error.kind != "ambiguous":
        return localai.failure(error, prefix="failed to discover model config: ")
    details = error.details["candidates"]
    candidates = [one["backend"] for one in details] if isinstance(details, list) else []
    envelope = {"error": "ambiguous import", "detail": messages.detail(error), "modality": "text"}
    return json_answer({**envelope, "candidates": candidates, "hint": HINT}, 400)


@router.get("/models/jobs/{uuid}")
def job(uuid: str, at: AtDesk, _who: Reader) -> Response:
    """Return the state of an import: progress 100, processed, and the message `completed` once it is
    written.
    """
    with at.database.reading() as connection:
        row = jobs.get(connection, uuid)
    if row.kind != "import":
        raise ServiceError("no-such-job", job=uuid)
    return json_answer(status(row))


@router.get("/models/jobs")
def all_jobs(at: AtDesk, _who: Reader) -> Response:
    """Return the newest imports by uuid."""
    with at.database.reading() as connection:
        rows = jobs.newest(connection, "import", NEWEST)
    return json_answer({one.id: status(one) for one in rows})


@router.get("/models/available")
def available(request: Request, at: AtDesk, _who: Reader) -> Response:
    """Return what LocalAI can install from this gallery; members that are empty are left out."""
    gallery = at.address(request)
    with at.database.reading() as connection:
        return json_answer([one | {"gallery": gallery} for one in releases.listed(connection)])


@router.get("/models/galleries")
def galleries(request: Request, at: AtDesk, _who: Reader) -> Response:
    """List the gallery as an entry of `GALLERIES`."""
    return json_answer([at.address(request)])


@router.get("/backends/known")
def backends(at: AtDesk, _who: Reader) -> Response:
    """List the backends; `installed` where a process of this service has the engine."""
    with at.database.reading() as connection:
        engines = {engine for one in processes.all_executors(connection) for engine in one.engines}
    return json_answer(
        [
            {
                "name": name, "modality": "text", "auto_detect": "detected" in backend_of(name).in_localai,
                "description": registries.load_capabilities(name).label,
                "installed": any(serves(one, name) for one in engines),
            }
            for name in sorted(at.settings.backends)
        ]
    )  # fmt: skip
