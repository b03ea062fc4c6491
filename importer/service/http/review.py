"""``/approve``, ``/reject``, ``/validate``, and all that a reviewer is shown side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from importer.app.parser_choice import check_approval
from importer.app.states import State
from importer.app.why import explanations
from importer.config import now
from importer.document import document_keys
from importer.document.document_keys import IMPORTANT, differences, same
from importer.document.receipt import ReviewEntry
from importer.document.review import change_json, record_review, warnings
from importer.document.store import StoredDocument
from importer.errors import ImporterError
from importer.reports.pictures import ProofMap, proof_maps
from importer.service.desk import AtDesk, Desk, json_answer
from importer.service.domain import validations, workflow
from importer.service.domain.gallery import DocumentVersion
from importer.service.domain.grants import Caller
from importer.service.domain.listing import losses_of
from importer.service.domain.releases import ready, release
from importer.service.domain.validations import equal, order
from importer.service.domain.workflow import NextStep, PossibleAction, Situation, WorkflowStep, values_of
from importer.service.http.headers import IfMatch, etag, seen_versions
from importer.service.http.models import (
    Approval,
    DocumentSummary,
    Job,
    LossOf,
    Rejection,
    ValidationRequest,
    WarningEntry,
    config_json,
    job_json,
)
from importer.service.http.recheck import Comparison, comparison_json
from importer.service.problems import accepted
from importer.service.reads import Reads
from importer.service.security import Approver, Importer, Reader, act
from importer.storage import audit, documents, processes, rechecks, releases
from importer.storage.documents import Version
from importer.storage.releases import Served

router = APIRouter(prefix="/v1/configs", tags=["review"], route_class=Reads)


@router.post("/{name}/approve", response_model=DocumentSummary, summary="Approve a document as it was seen")
def approve(
    name: str, request: Request, at: AtDesk, who: Approver, match: IfMatch,
    body: Approval | None = None,
) -> Response:  # fmt: skip
    """Approve the version that was seen: `digest` or `If-Match` names it.

    The approval releases a validated document, unless `publish` is false.
    """
    said = body or Approval()
    with at.gallery.change(act(request, who, "approve", said.note)) as change:
        change.expect(name, None)
        change.expect(name, seen_versions(match, said.digest, name))
        check_approval(change.checkout.load(name))
        word = ReviewEntry("approved", who.name, now(), said.note)
        record_review(change.checkout, name, word, said.digest)
        if said.publish or (said.publish is None and ready(change, name)):
            release(change, name)
        summary = change.save(name)
        headers = {"ETag": etag(summary.version)}
        return json_answer(config_json(summary), 200, headers)


@router.post("/{name}/reject", response_model=DocumentSummary, summary="Reject a document, saying why")
def reject(
    name: str, request: Request, at: AtDesk, who: Approver, match: IfMatch,
    body: Rejection,
) -> Response:  # fmt: skip
    """Reject the working copy; with `If-Match` or `digest` only that version. A release stays served."""
    with at.gallery.change(act(request, who, "reject", body.note)) as change:
        change.expect(name, None)
        change.expect(name, None if match is None else seen_versions(match, body.digest, name))
        word = ReviewEntry("rejected", who.name, now(), body.note)
        record_review(change.checkout, name, word, body.digest)
        summary = change.save(name)
        headers = {"ETag": etag(summary.version)}
        return json_answer(config_json(summary), 200, headers)


@router.post(
    "/{name}/validate",
    status_code=202,
    response_model=Job,
    responses=accepted(),
    summary="Run a document on a real engine and probe it",
)
def validate(
    name: str, request: Request, at: AtDesk, who: Importer, body: ValidationRequest | None = None
) -> Response:
    """Queue a validation and answer at once with its job, which waits for a worker with the engine, the
    device and the memory. The same data on the same engine are not queued twice: while such a job waits or
    runs, the answer is that job, with `merged`.
    """
    options = body or ValidationRequest()
    wanted = validations.order(
        at.gallery, name, options.engine, fetch=options.fetch, thorough=options.thorough,
        measure=options.measure,
    )  # fmt: skip
    with at.database.writing() as connection:
        at.database.alone(connection)
        job, new = validations.ask(connection, wanted, who.name)
        audit.record(connection, act(request, who, "ask"), f"job {job.id}", wanted.request)
        data = job_json(job) | ({} if new else {"merged": True})
        return json_answer(data, 202, {"Location": f"/v1/jobs/{job.id}"})


router_review_page = APIRouter(prefix="/v1/configs", tags=["review"], route_class=Reads)


class ReviewChanges(BaseModel):
    """Changes of the whole data from three sides; null where there is no such side."""

    imported: list[dict[str, object]] | None
    approved: list[dict[str, object]] | None
    served: list[dict[str, object]] | None


class ReviewSheet(BaseModel):
    """What a reviewer is shown; the last recheck and warnings come before the settings."""

    name: str
    version: int
    digest: str
    state: State
    served: Served | None
    recheck: Comparison | None = Field(
        description="what the last recheck found, while an import would change the document"
    )
    warnings: list[WarningEntry]
    settings: list[dict[str, object]] = Field(
        description="each key as it is, in the import and in the release, with source, reasons and other "
        "offers: with attention first, then edited, new, parsers, context, sampling"
    )
    losses: list[LossOf] | None = Field(description="what LocalAI would lack; null without an entry")
    listed: bool = Field(description="whether LocalAI can have an entry, so that an approval may publish")
    changes: ReviewChanges
    maps: tuple[ProofMap, ...] = Field(description="parsers by cases of the proof, the document's first")
    steps: list[WorkflowStep]
    next: NextStep
    actions: list[PossibleAction]


@router_review_page.get(
    "/{name}/review",
    response_model=ReviewSheet,
    response_model_exclude_unset=True,
    summary="Everything for a review, side by side",
)
def sheet(name: str, at: AtDesk, who: Reader) -> dict[str, object]:
    """Return the last recheck, each setting with its values and sources, losses, changes, the map of the
    parsers, the steps to a release and the actions that are possible.
    """
    summary, version = at.gallery.get(name)
    stored = version.stored
    stored.need_receipt()
    with at.database.reading() as connection:
        served = releases.served(connection, name)
        left = _rolled_back(connection, version, served)
        past = None if served is None else documents.version(connection, name, served.version)
        last = rechecks.last(connection, name)
    warned = [*warnings(stored)]
    situation = replace(_situation(at, version, served, who), left=left)
    return {
        "name": name, "version": summary.version, "digest": summary.digest, "state": summary.state,
        "served": served,
        "recheck": None if last is None else comparison_json(last),
        "warnings": warned, "settings": _settings(at, version, warned, served is not None),
        "losses": losses_of(stored),
        "listed": workflow.listed(stored), "changes": _changes(version, past),
        "maps": _maps(stored), "steps": workflow.steps(situation),
        "next": workflow.next_step(situation), "actions": workflow.actions(situation),
    }  # fmt: skip


def _maps(stored: StoredDocument) -> tuple[ProofMap, ...]:
    """Return the maps of the proof, the parsers that the document names now first."""
    chosen = {key: document_keys.parser(stored.data, key) for key in document_keys.OPTIONS}
    return proof_maps(stored.need_receipt().proof, chosen)


def _rolled_back(connection: Connection, version: DocumentVersion, served: Served | None) -> int | None:
    """Return the version that was rolled back, where the document has its data still."""
    if served is None or served.left is None:
        return None
    row = documents.version(connection, version.name, served.left)
    return served.left if row is not None and row.digest == version.digest else None


def _situation(at: Desk, version: DocumentVersion, served: Served | None, who: Caller) -> Situation:
    """Return what the actions depend on; a validation that cannot be ordered has its own obstacle."""
    stored = version.stored
    able, open_job, refused, wanted = True, None, None, None
    try:
        wanted = order(at.gallery, version.name, None, fetch=True)
    except ImporterError as error:
        refused = None if error.kind in ("code-not-approved", "invalid") else error.kind
    if wanted is not None:
        with at.database.reading() as connection:
            able = any(one.can(wanted.engine, wanted.memory) for one in processes.all_executors(connection))
            job = equal(connection, wanted) or equal(connection, replace(wanted, fetch=False))
            open_job = None if job is None else job.id
    return Situation(stored, None if served is None else served.digest, who, able, open_job, refused)


def _settings(
    at: Desk, version: DocumentVersion, warnings: list[Mapping[str, object]], released: bool
) -> list[dict[str, object]]:
    stored = version.stored
    reasons, shown = {one.key: one for one in explanations(stored)}, []
    for value in values_of(at.gallery, stored):
        explained = reasons[str(value["key"])]
        kinds = [str(one["kind"]) for one in warnings if one.get("key") == value["key"]]
        written = "served" in value or value["status"] != "engine-default"  # else no document has it
        new = released and written and not same(value.get("value"), value.get("served"))
        shown.append(value | {
            "why": explained.facts, "overruled": [*explained.candidates],
            "attention": kinds, "edited": value["status"] == "edited", "new": new,
        })  # fmt: skip
    return sorted(shown, key=lambda one: (
        not one["attention"], not one["edited"], not one["new"],
        IMPORTANT.index(one["key"]) if one["key"] in IMPORTANT else len(IMPORTANT),
    ))  # fmt: skip


def _changes(version: DocumentVersion, served: Version | None) -> dict[str, object]:
    stored = version.stored
    receipt = stored.need_receipt()
    approved = None if receipt.approved is None else receipt.approved["data"]
    sides = {
        "imported": receipt.wrote, "approved": approved,
        "served": None if served is None else DocumentVersion.of(served).document,
    }  # fmt: skip
    return {
        side: None if data is None else [change_json(one) for one in differences(data, stored.data)]
        for side, data in sides.items()
    }
