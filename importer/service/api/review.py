"""``/approve``, ``/reject`` and ``/validate``: reviews and validations of documents."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.config import now
from importer.config_file.receipt import Receipt, ReviewEntry
from importer.config_file.review import record_review
from importer.engines import get
from importer.service.api.dependencies import AtDesk
from importer.service.api.etags import IfMatch, etag, numbers, seen
from importer.service.api.problems import accepted, problems
from importer.service.api.request_models import Approval, Rejection, ValidationRequest
from importer.service.api.response_models import Config, Job, config_json, job_json
from importer.service.idempotency import AskedOnce
from importer.service.releases import promote, ready
from importer.service.security.auth import Approver, Importer, act
from importer.service.security.grants import need_approval
from importer.storage import audit, executors, jobs

NOBODY = (
    "no worker has {engine} and the memory; it waits for one that does: install {known} on the server or "
    "on a worker, then start that again"
)

router = APIRouter(prefix="/v1/configs", tags=["review"])


@router.post(
    "/{name}/approve",
    response_model=Config,
    responses=problems(
        "no-such-document", "invalid", "changed", "precondition-failed", "digest-required", "no-receipt",
        "not-ready-to-release", "key-reused",
    ),
    summary="Approve a document as it was seen",
)  # fmt: skip
def approve(
    name: str, request: Request, at: AtDesk, who: Approver, once: AskedOnce,
    body: Approval | None = None, match: IfMatch = None,
) -> Response:  # fmt: skip
    """Approve the version that was seen: `digest` or `If-Match` names it.

    A key with the scope `publish` releases a validated document with its approval, unless `publish` is false.
    """
    if (answered := once.replay()) is not None:
        return answered
    said = body or Approval()
    if said.publish:
        who.needs("publish")
    with at.gallery.change(act(request, who, "approve", said.note)) as change:
        change.expect(name, None)
        change.expect(name, seen(match, said.digest, name))
        word = ReviewEntry("approved", who.name, now(), said.note)
        record_review(change.checkout, name, word, said.digest)
        if said.publish or (said.publish is None and who.may("publish") and ready(change, name)):
            promote(change, name, said.note)
        summary = change.save(name)
        headers = {"ETag": etag(summary.version)}
        return once.answer(change.connection, config_json(summary), 200, headers)


@router.post(
    "/{name}/reject",
    response_model=Config,
    responses=problems("no-such-document", "changed", "precondition-failed", "no-receipt", "key-reused"),
    summary="Reject a document, saying why",
)
def reject(
    name: str, request: Request, at: AtDesk, who: Approver, once: AskedOnce,
    body: Rejection, match: IfMatch = None,
) -> Response:  # fmt: skip
    """Reject the working copy; with `If-Match` or `digest` only that version. A release stays served."""
    if (answered := once.replay()) is not None:
        return answered
    with at.gallery.change(act(request, who, "reject", body.note)) as change:
        change.expect(name, numbers(match))
        word = ReviewEntry("rejected", who.name, now(), body.note)
        record_review(change.checkout, name, word, body.digest)
        summary = change.save(name)
        headers = {"ETag": etag(summary.version)}
        return once.answer(change.connection, config_json(summary), 200, headers)


@router.post(
    "/{name}/validate",
    status_code=202,
    response_model=Job,
    responses=accepted()
    | problems(
        "no-such-document", "invalid", "unknown-engine", "no-receipt", "key-reused", "code-not-approved"
    ),
    summary="Run a document on a real engine and probe it",
)
def validate(
    name: str,
    request: Request,
    at: AtDesk,
    who: Importer,
    once: AskedOnce,
    body: ValidationRequest | None = None,
) -> Response:
    """Queue a validation and answer at once with its job, which waits for a worker with the engine, the
    device and the memory.
    """
    if (answered := once.replay()) is not None:
        return answered
    options = body or ValidationRequest()
    with at.gallery.checkout() as folder:
        stored = folder.load(name)
        stored.check()
        need_approval(stored)
        engine = options.engine or stored.backend
        known = get(engine).name
        needs = _memory(stored.need_receipt())
    with at.database.writing() as connection:
        request_body = {"config": name, "engine": engine, "fetch": options.fetch}
        able = any(one.can(engine, needs) for one in executors.all_executors(connection))
        job = jobs.create(
            connection, "validation", request_body, who.name, config=name, engine=engine, memory=needs,
            text=None if able else NOBODY.format(engine=engine, known=known),
        )  # fmt: skip
        audit.record(connection, act(request, who, "ask"), f"job {job.id}", request_body)
        return once.answer(connection, job_json(job), 202, {"Location": f"/v1/jobs/{job.id}"})


def _memory(receipt: Receipt) -> int | None:
    """Return the likely bytes of the model on each device, where they were estimated."""
    try:
        return int(((receipt.fit or {})["estimate"])["total"]["likely"])
    except (KeyError, TypeError, ValueError):
        return None
