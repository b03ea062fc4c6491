"""``/models``, ``/backends`` and ``/api/models/config-json`` as LocalAI has them."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.backends import of as backend_of
from importer.backends import serves
from importer.document.edited_comments import patched
from importer.document.store import StoredDocument
from importer.engines import registries
from importer.errors import ImporterError, ServiceError
from importer.service import localai, messages
from importer.service.desk import AtDesk, Desk, json_answer
from importer.service.domain.grants import Caller
from importer.service.http.editor import edit, look_at_edit, turn
from importer.service.http.headers import IfMatch, etag, etag_numbers
from importer.service.http.models import json_object
from importer.service.localai import Importer, Reader, estimates, import_request, merge, status
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
            sizes = estimates(studied)
    except ImporterError as error:
        return _refused(error)
    with at.database.writing() as connection:
        job = jobs.create(connection, "import", import_body.model_dump(exclude_unset=True), who.name)
        audit.record(connection, act(request, who, "ask"), f"job {job.id}", {"imports": 1})
    at.runner.bring(job, studied)
    at_job = f"{at.base(request)}/models/jobs/{job.id}"
    return json_answer({"uuid": job.id, "status": at_job, **sizes})


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


router_localai_configs = APIRouter(
    prefix="/api/models/config-json", tags=["localai"], route_class=localai.Flat, include_in_schema=False
)
EMPTY = "request body is empty or unreadable"


@router_localai_configs.get("/{name}")
def config(name: str, at: AtDesk, _who: Reader) -> Response:
    """Return the document's data as written, without defaults."""
    summary, version = at.gallery.get(name)
    return json_answer(version.stored.data, headers={"ETag": etag(summary.version)})


@router_localai_configs.patch("/{name}")
async def patch_config(name: str, request: Request, at: AtDesk, who: Importer, match: IfMatch) -> Response:
    """Apply a deep merge: lists replace, maps of free keys such as `engine_args` are replaced whole, null is
    a value.

    Comments stay. The name cannot be changed.
    """
    body = await request.body()
    return await at.reading(_patched, name, body, request, at, who, etag_numbers(match))


def _patched(
    name: str, body: bytes, request: Request, at: Desk, who: Caller, expected: list[int] | None
) -> Response:
    patch = json_object(body) if body.strip() else {}
    if not patch:
        return json_answer({"error": EMPTY}, 400)

    def text(old: StoredDocument) -> str:
        return patched(old, merge(old.data, patch))

    found = edit(name, at, who, act(request, who, "edit"), expected, text)
    return json_answer(
        {
            "success": True,
            "message": f"Model '{name}' updated successfully",
            "config_revision": re.sub("^sha256:", "", found.digest),
            "pending_cleanup": 0,
        },
        headers={"ETag": etag(found.version)},
    )
