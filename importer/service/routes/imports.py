"""``POST /v1/imports``: import one model or a list, or look at what an import would write."""

from __future__ import annotations

from threading import BoundedSemaphore
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.decide.decision import to_json
from importer.deciding import conclude, prove_studied, study_snapshot
from importer.document.diff import Change
from importer.document.naming import Names
from importer.document.receipt import evidence_json
from importer.document.review import change_json
from importer.document.store import Store
from importer.document.text import to_text
from importer.errors import DocumentError, ServiceError
from importer.gallery import audit, jobs
from importer.hub import parse, resolve
from importer.pipeline import Plan, lay_out
from importer.service.asked import Import, request_of
from importer.service.auth import Importer, act
from importer.service.desk import AtDesk, Desk
from importer.service.jobs.importing import need_choice
from importer.service.once import AskedOnce
from importer.service.routes.said import ACCEPTED, problems
from importer.service.shapes import Job, Preview, job_json
from importer.writing import settle

router = APIRouter(prefix="/v1/imports", tags=["imports"])
PATIENCE = 1.0  # seconds that a preview waits for its turn
SOON = 5  # seconds
_previews: dict[int, BoundedSemaphore] = {}


@router.post(
    "",
    status_code=202,
    response_model=Job,
    responses=ACCEPTED | problems("bad-reference", "no-directories", "unknown-device", "key-reused"),
    summary="Import a model, or a list of models",
)
def start(body: Import, request: Request, at: AtDesk, who: Importer, once: AskedOnce) -> Response:
    """Answered at once with a job; `Location` names it. A list is one job with a job for each reference."""
    if (answered := once.said()) is not None:
        return answered
    wanted = _split(body, at)
    with at.database.writing() as connection:
        root = None
        if body.references is not None:
            root = jobs.create(connection, "imports", body.model_dump(exclude_unset=True), who.name)
        made = [
            jobs.create(connection, "import", one, who.name, root=root, place=place)
            for place, one in enumerate(wanted, 1)
        ]
        first = root or made[0]
        counts = None if root is None else {"queued": len(made)}
        audit.record(
            connection, act(request, who, "ask", body.note), f"job {first.id}", {"imports": len(made)}
        )
        headers = {"Location": f"/v1/jobs/{first.id}"}
        answered = once.answer(connection, job_json(first, counts), 202, headers)
    at.crew.hurry()
    return answered


def _split(body: Import, at: Desk) -> list[dict[str, Any]]:
    """One request for each reference, each checked before any is accepted."""
    said = body.model_dump(exclude_unset=True, exclude={"references"})
    if body.references is None:
        request_of(body, at.settings)
        return [said]
    if len(body.references) > at.settings.references:
        problem = f"a list has at most {at.settings.references} references"
        raise ServiceError(
            "bad-request", problem=problem, errors=[{"pointer": "/references", "detail": problem}]
        )
    request_of(Import(**said, reference=body.references[0]), at.settings)  # what is said of all
    return [{**said, "reference": reference} for reference in body.references]


@router.post(
    "/preview",
    response_model=Preview,
    responses=problems(
        "bad-reference", "not-found", "not-chat", "ambiguous", "gated", "network", "exists", "busy"
    ),
    summary="What an import would write",
)
def preview(body: Import, at: AtDesk, who: Importer) -> dict[str, Any]:
    """Everything but writing: the document, its decisions, and what it changes. Waits for the answer."""
    del who
    if body.reference is None:
        problem = "a preview is of one reference"
        raise ServiceError(
            "bad-request", problem=problem, errors=[{"pointer": "/references", "detail": problem}]
        )
    limit = _previews.setdefault(id(at.crew), BoundedSemaphore(at.settings.previews))
    if not limit.acquire(timeout=PATIENCE):  # whoever waits holds a thread that others need
        raise ServiceError("busy", seconds=SOON)
    try:
        return _preview(body, at)
    finally:
        limit.release()


def _preview(body: Import, at: Desk) -> dict[str, Any]:
    request = request_of(body, at.settings)
    snapshot = resolve(parse(request.reference, request.revision))
    with at.gallery.checkout() as folder:
        names = Names(folder)
        studied = study_snapshot(snapshot, request.after(names.known(snapshot, request.name)), at.crew.bench)
        need_choice(studied, at.settings)
        planned = lay_out(conclude(studied, prove_studied(studied, at.crew.bench)), names)
        return _shown(planned, folder, body)


def _shown(planned: Plan, folder: Store, body: Import) -> dict[str, Any]:
    edits: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    conflicts: list[dict[str, Any]] = []
    text, document = to_text(planned.built), planned.built.data
    try:
        settled = settle(planned, folder, body.take)
        edits, changes, text, document = settled.edits, settled.changes, settled.text, settled.plan.built.data
    except DocumentError as error:
        found = error.details.get("conflicts")
        if not isinstance(found, list):
            raise
        conflicts = [c.to_json() for c in found]
    return {
        "name": planned.name,
        "model": planned.model,
        "revision": planned.snapshot.revision,
        "backend": planned.target.backend,
        "text": text,
        "document": document,
        "decisions": {k: to_json(d) for k, d in planned.decisions.items()},
        "evidence": evidence_json(planned.evidence),
        "fit": planned.fit.to_json(),
        "proof": None if planned.proof is None else planned.proof.to_json(),
        "unknown": dict(planned.snapshot.unknown),
        "new": folder.find(planned.name) is None,
        "edits": [change_json(c) for c in edits],
        "changes": [change_json(c) for c in changes],
        "conflicts": conflicts,
    }
