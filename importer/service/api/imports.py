"""``POST /v1/imports``: import one model or a list, or preview an import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.app.decide import Studied, finalize, prove_studied
from importer.app.import_ import Plan, build_plan, merge_plan
from importer.config_file.build import to_json, to_text
from importer.config_file.diff import Change
from importer.config_file.merge import of_conflicts
from importer.config_file.name_allocator import Names
from importer.config_file.receipt import evidence_json
from importer.config_file.review import change_json
from importer.config_file.store import Store
from importer.errors import DocumentError, ImporterError, ServiceError
from importer.hub import parse
from importer.messages import render
from importer.service import messages
from importer.service.api.dependencies import AtDesk, Desk
from importer.service.api.edit import look, turn
from importer.service.api.problems import accepted, problems
from importer.service.api.request_models import Import
from importer.service.api.response_models import Job, Preview, job_json
from importer.service.idempotency import AskedOnce
from importer.service.security.auth import Importer, act
from importer.service.security.grants import Caller, admitted, check_reference
from importer.storage import audit, jobs

router = APIRouter(prefix="/v1/imports", tags=["imports"])
ASKING = (
    "with the problem `ambiguous` and its `candidates` as `error` where several backends could take the model"
)


@router.post(
    "",
    status_code=202,
    response_model=Job,
    responses=accepted(ASKING)
    | problems(
        "bad-reference",
        "no-directories",
        "unknown-device",
        "ambiguous",
        "busy",
        "key-reused",
        "needs-approver",
    ),
    summary="Import a model, or a list of models",
)
def start(body: Import, request: Request, at: AtDesk, who: Importer, once: AskedOnce) -> Response:
    """Queue an import and answer at once with its job; `Location` names it. A list is one job with a job for
    each reference.

    Several backends may be able to serve a model. Where the request names none, a directory is analysed
    first, and this answers 409 with the candidates; a repository of the Hub is analysed by the job, which
    then fails with the same problem.
    """
    if (answered := once.replay()) is not None:
        return answered
    requests, seen = _split(body, at, who), _seen(body, at, who)
    with at.database.writing() as connection:
        root = None
        if body.references is not None:
            root = jobs.create(connection, "imports", body.model_dump(exclude_unset=True), who.name)
        made = [
            jobs.create(connection, "import", one, who.name, root=root, place=place)
            for place, one in enumerate(requests, 1)
        ]
        first = root or made[0]
        counts = None if root is None else {"queued": len(made)}
        audit.record(
            connection, act(request, who, "ask", body.note), f"job {first.id}", {"imports": len(made)}
        )
        headers = {"Location": f"/v1/jobs/{first.id}"}
        answered = once.answer(connection, job_json(first, counts), 202, headers)
    if seen is None:
        at.runner.hurry()
    else:
        at.runner.bring(first, seen)
    return answered


def _seen(body: Import, at: Desk, who: Caller) -> Studied | None:
    """Analyse a directory before the job, without a request to the Hub; ``None`` where the job does it."""
    if body.backend is not None or body.reference is None or parse(body.reference).directory is None:
        return None
    with turn(at):
        return look(body, at, who)


def _split(body: Import, at: Desk, who: Caller) -> list[dict[str, Any]]:
    """Return one request for each reference, each checked before any is accepted."""
    options = body.model_dump(exclude_unset=True, exclude={"references"})
    if body.references is None:
        admitted(body, who, at.settings)
        return [options]
    if len(body.references) > at.settings.references:
        problem = f"a list has at most {at.settings.references} references"
        raise ServiceError(
            "bad-request", problem=problem, errors=[{"pointer": "/references", "detail": problem}]
        )
    _check_references(body.references, body.revision, who, at)
    admitted(Import(**options, reference=body.references[0]), who, at.settings)
    return [{**options, "reference": reference} for reference in body.references]


def _check_references(references: Sequence[str], revision: str | None, who: Caller, at: Desk) -> None:
    """Raise the error of the first invalid reference; its ``errors`` have all of them."""
    failed: list[tuple[int, ImporterError]] = []
    for place, reference in enumerate(references):
        try:
            check_reference(reference, revision, who, at.settings)
        except ImporterError as error:
            failed.append((place, error))
    if failed:
        first = failed[0][1]
        errors = [
            {"pointer": f"/references/{place}", "detail": messages.detail(error)} for place, error in failed
        ]
        raise first.but(errors=errors)


@router.post(
    "/preview",
    response_model=Preview,
    response_model_exclude_unset=True,
    responses=problems(
        "bad-reference",
        "not-found",
        "not-chat",
        "ambiguous",
        "gated",
        "network",
        "exists",
        "other-backend",
        "busy",
        "needs-approver",
    ),
    summary="What an import would write",
)
def preview(body: Import, at: AtDesk, who: Importer) -> dict[str, Any]:
    """Return the document, its decisions and what it changes, without writing. The request waits for them."""
    if body.reference is None:
        problem = "a preview is of one reference"
        raise ServiceError(
            "bad-request", problem=problem, errors=[{"pointer": "/references", "detail": problem}]
        )
    with turn(at):
        return _preview(body, at, who)


def _preview(body: Import, at: Desk, who: Caller) -> dict[str, Any]:
    studied = look(body, at, who)
    decided = finalize(studied, prove_studied(studied, at.runner.bench))
    with at.gallery.checkout() as folder:
        return _shown(build_plan(decided, Names(folder)), folder, body)


def _shown(planned: Plan, folder: Store, body: Import) -> dict[str, Any]:
    edits: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    conflicts: list[dict[str, Any]] = []
    text, document, warnings = to_text(planned.built), planned.built.data, planned.warnings
    try:
        settled = merge_plan(planned, folder, body.take)
        edits, changes, text, document = settled.edits, settled.changes, settled.text, settled.plan.built.data
        warnings = settled.warnings
    except DocumentError as error:
        clashes = error.details.get("conflicts")
        if not isinstance(clashes, list):
            raise
        conflicts = [c.to_json() for c in clashes]
        warnings += of_conflicts(clashes)
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
        "unknown": {path: render(reason) for path, reason in planned.snapshot.unknown.items()},
        "new": folder.find(planned.name) is None,
        "edits": [change_json(c) for c in edits],
        "changes": [change_json(c) for c in changes],
        "conflicts": conflicts,
        "warnings": [warning.to_json() for warning in warnings],
    }
