"""``POST /v1/imports``: import one model or a list, or preview an import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.app.decide import Studied, finalize, prove_studied
from importer.app.import_ import Plan, build_plan, merge_plan, of_device
from importer.app.organisation import Totals
from importer.config_file.build import to_json, to_text
from importer.config_file.diff import Change
from importer.config_file.merge import of_conflicts
from importer.config_file.name_allocator import Names
from importer.config_file.receipt import evidence_json
from importer.config_file.review import change_json
from importer.config_file.store import Store
from importer.errors import DocumentError, ServiceError
from importer.hub import parse
from importer.sentences import render
from importer.service.desk import AtDesk, Desk
from importer.service.domain.grants import Caller
from importer.service.domain.import_request import Import
from importer.service.http.idempotency import AskedOnce, Idempotency
from importer.service.http.import_lines import check_organisation, check_request, read_lines
from importer.service.http.organisation_summary import ImportSummary
from importer.service.http.response_models import Job, Preview, job_json
from importer.service.http.save_edit import look, turn
from importer.service.problems import LOCATION, accepted, problems
from importer.service.security.auth import Importer, Reader, act
from importer.storage import audit, jobs
from importer.storage.audit import AuditContext

router = APIRouter(prefix="/v1/imports", tags=["imports"])
ASKING = (
    "with the problem `ambiguous` and its `candidates` as `error` where several backends could take the model"
)


@router.post(
    "",
    status_code=202,
    response_model=Job,
    responses=accepted(ASKING)
    | {207: {"model": Job, "description": "The list was accepted but for some lines", "headers": LOCATION}}
    | problems(
        "bad-reference",
        "no-directories",
        "unknown-device",
        "unknown-parser",
        "ambiguous",
        "busy",
        "key-reused",
        "needs-approver",
    ),
    summary="Import a model, a list of models, or an organisation",
)
def create(body: Import, request: Request, at: AtDesk, who: Importer, once: AskedOnce) -> Response:
    """Queue an import and answer at once with its job; `Location` names it. A list is one job with a job for
    each reference.

    A refused line of a list does not refuse the others: the answer is 207, and `lines` has the result of
    each. With `atomic` one such line refuses the list. An organisation is one job, too: a first job lists its
    models, and adds one for each. Its `summary` counts them.

    Several backends may be able to serve a model. Where the request names none, a directory is analysed
    first, and this answers 409 with the candidates; a repository of the Hub is analysed by the job, which
    then fails with the same problem.
    """
    if (answered := once.replay()) is not None:
        return answered
    if body.organisation is not None:
        return _organisation(body, act(request, who, "ask", body.note), at, who, once)
    if body.references is not None:
        return _list(body, body.references, act(request, who, "ask", body.note), at, who, once)
    check_request(body, who, at.settings)
    seen = _seen(body, at, who)
    with at.database.writing() as connection:
        made = jobs.create(connection, "import", body.model_dump(exclude_unset=True), who.name)
        audit.record(connection, act(request, who, "ask", body.note), f"job {made.id}", {"imports": 1})
        answered = once.answer(connection, job_json(made), 202, {"Location": f"/v1/jobs/{made.id}"})
    if seen is None:
        at.runner.hurry()
    else:
        at.runner.bring(made, seen)
    return answered


def _organisation(body: Import, doing: AuditContext, at: Desk, who: Caller, once: Idempotency) -> Response:
    """Queue the listing of an organisation in a list of its own."""
    check_organisation(body, who, at.settings)
    request = body.model_dump(exclude_unset=True)
    with at.database.writing() as connection:
        root = jobs.create(connection, "imports", request, who.name)
        jobs.create(connection, "listing", request, who.name, root=root)
        audit.record(connection, doing, f"job {root.id}", {"organisation": body.organisation})
        headers = {"Location": f"/v1/jobs/{root.id}"}
        answered = once.answer(connection, job_json(root, {}), 202, headers)
    at.runner.hurry()
    return answered


@router.get(
    "/{job}/summary",
    response_model=ImportSummary,
    responses=problems("no-such-job"),
    summary="What an organisation's import has found",
)
def summary(job: str, at: AtDesk, who: Reader) -> dict[str, Any]:
    """Return how many models were imported, skipped or failed, by kind, with the families, the parsers and
    the findings of the imported ones. It counts what has ended.
    """
    del who
    totals = Totals()
    with at.database.reading() as connection:
        row = jobs.get(connection, job)
        if row.kind != "imports" or "organisation" not in row.request:
            raise ServiceError("no-such-job", job=job)
        for state, reference, result, error in jobs.results(connection, row):
            if state == "succeeded" and "skipped" not in result:
                totals.add(result.get("facts", {}))
            else:
                kind = result.get("skipped") or error.get("kind") or state
                totals.refuse(reference, str(kind))
        states = jobs.counts(connection, row.id)
    waiting = sum(states.get(state, 0) for state in jobs.OPEN)
    return {"job": row.id, "organisation": row.request["organisation"], "state": row.state,
            "waiting": waiting, **totals.to_json()}  # fmt: skip


def _list(
    body: Import, references: Sequence[Any], doing: AuditContext, at: Desk, who: Caller, once: Idempotency
) -> Response:
    """Queue a list: a job for each line that is not refused, and a result for each line."""
    lines = read_lines(body, references, who, at.settings)
    options = body.model_dump(exclude_unset=True, exclude={"references", "atomic"})
    refused = [line.refusal for line in lines if line.error is not None]
    accepted_lines = [line for line in lines if line.error is None]
    with at.database.writing() as connection:
        request = options | {"references": [line.reference for line in accepted_lines]}
        root = jobs.create(
            connection, "imports", request | ({"refused": refused} if refused else {}), who.name
        )
        made = {
            line.number: jobs.create(
                connection,
                "import",
                {**options, "reference": line.reference},
                who.name,
                root=root,
                place=place,
            )
            for place, line in enumerate(accepted_lines, 1)
        }
        audit.record(
            connection,
            doing,
            f"job {root.id}",
            {"imports": len(made)} | ({"refused": len(refused)} if refused else {}),
        )
        results = [line.result(made.get(line.number)) for line in lines]
        members = job_json(root, {"queued": len(made)}) | {"lines": results}
        headers = {"Location": f"/v1/jobs/{root.id}"}
        answered = once.answer(connection, members, 207 if refused else 202, headers)
    at.runner.hurry()
    return answered


def _seen(body: Import, at: Desk, who: Caller) -> Studied | None:
    """Analyse a directory before the job, without a request to the Hub; ``None`` where the job does it."""
    if (
        body.options["backend"] is not None
        or body.reference is None
        or parse(body.reference).directory is None
    ):
        return None
    with turn(at):
        return look(body, at, who)


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
        "other-device",
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
        settled = merge_plan(planned, folder, body.take, body.on_conflict)
        edits, changes, text, document = settled.edits, settled.changes, settled.text, settled.plan.built.data
        warnings = settled.warnings
    except DocumentError as error:
        clashes = error.details.get("conflicts")
        if not isinstance(clashes, list):
            raise
        conflicts = [c.to_json() for c in clashes]
        warnings += (*of_device(planned, folder.find(planned.name)), *of_conflicts(clashes))
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
