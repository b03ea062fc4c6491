"""``/approve``, ``/reject`` and ``/validate``: reviews and validations of documents."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.config import now
from importer.config_file.receipt import ReviewEntry
from importer.config_file.review import record_review
from importer.service.desk import AtDesk
from importer.service.domain import validations
from importer.service.domain.pools import usable
from importer.service.domain.releases import promote, ready
from importer.service.http.etags import IfMatch, etag, seen
from importer.service.http.idempotency import AskedOnce
from importer.service.http.request_models import Approval, Rejection, ValidationRequest
from importer.service.http.response_models import Job, job_json
from importer.service.http.summary_models import DocumentSummary, config_json
from importer.service.problems import accepted, problems
from importer.service.security.auth import Approver, Importer, act
from importer.storage import audit

router = APIRouter(prefix="/v1/configs", tags=["review"])


@router.post(
    "/{name}/approve",
    response_model=DocumentSummary,
    responses=problems(
        "no-such-document", "invalid", "changed", "precondition-failed", "digest-required", "no-receipt",
        "not-ready-to-release", "key-reused",
    ),
    summary="Approve a document as it was seen",
)  # fmt: skip
def approve(
    name: str, request: Request, at: AtDesk, who: Approver, once: AskedOnce, match: IfMatch,
    body: Approval | None = None,
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
    response_model=DocumentSummary,
    responses=problems(
        "no-such-document", "changed", "precondition-failed", "digest-required", "no-receipt", "key-reused"
    ),
    summary="Reject a document, saying why",
)
def reject(
    name: str, request: Request, at: AtDesk, who: Approver, once: AskedOnce, match: IfMatch,
    body: Rejection,
) -> Response:  # fmt: skip
    """Reject the working copy; with `If-Match` or `digest` only that version. A release stays served."""
    if (answered := once.replay()) is not None:
        return answered
    with at.gallery.change(act(request, who, "reject", body.note)) as change:
        change.expect(name, None)
        change.expect(name, None if match is None else seen(match, body.digest, name))
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
        "no-such-document",
        "invalid",
        "unknown-engine",
        "no-receipt",
        "key-reused",
        "code-not-approved",
        "unknown-pool",
        "bad-target",
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
    device and the memory. The same data on the same engine are not queued twice: while such a job waits or
    runs, the answer is that job, with `merged`.
    """
    if (answered := once.replay()) is not None:
        return answered
    options = body or ValidationRequest()
    on = None if options.on is None else usable(at.settings, options.on, who)
    wanted = validations.order(
        at.gallery, name, options.engine, fetch=options.fetch, score=options.score, on=on
    )  # fmt: skip
    with at.database.writing() as connection:
        at.database.alone(connection)
        job, new = validations.ask(connection, wanted, who.name)
        audit.record(connection, act(request, who, "ask"), f"job {job.id}", wanted.request)
        data = job_json(job) | ({} if new else {"merged": True})
        return once.answer(connection, data, 202, {"Location": f"/v1/jobs/{job.id}"})
