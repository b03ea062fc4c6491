"""``/v1/configs/{name}/releases`` and restores: promote, list, withdraw, roll back, bring back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from importer.config_file.document_keys import differences
from importer.config_file.review import change_json
from importer.errors import DocumentError
from importer.service.desk import AtDesk
from importer.service.domain import releases as back
from importer.service.domain.grants import SCOPE
from importer.service.domain.releases import need, need_history, promote, roll_back, withdraw
from importer.service.http.headers import MOST, AskedOnce, IfMatch, etag, needed_versions, seen_versions
from importer.service.http.models import DocumentSummary, LossOf, Note, ReleaseRequest, config_json
from importer.service.problems import problems
from importer.service.reads import Reads
from importer.service.security import Approver, Importer, Publisher, Reader, act
from importer.storage import documents, releases
from importer.storage import releases as rows
from importer.storage.releases import Release

router = APIRouter(prefix="/v1/configs/{name}/releases", tags=["releases"], route_class=Reads)
Number = Annotated[int, Path(ge=1, le=MOST)]


class Withdrawal(BaseModel):
    """Who withdrew a release, when, and why."""

    by: str
    at: str
    why: str | None


class ReleaseSummary(BaseModel):
    """A release: what was released by whom, and whether the gallery serves it."""

    name: str
    release: int = Field(description="the number")
    version: int = Field(description="the version of the document that was released")
    digest: str
    served: bool = Field(description="whether the entry is in the gallery's index")
    model: str | None
    revision: str | None
    backend: str | None
    by: str
    at: str
    why: str | None
    withdrawn: Withdrawal | None
    losses: list[LossOf] = Field(description="what its entry drops, changes, adds or does not pin")
    changes: list[dict[str, object]] | None = Field(
        description="from the release before; none for the first, and in the answer to a change"
    )


class ReleaseDocument(ReleaseSummary):
    """A release with its text and the data in it."""

    text: str
    data: dict[str, object]


class ReleasePage(BaseModel):
    """A page of releases, the newest first; ``served`` is the number of the one in the gallery."""

    items: list[ReleaseSummary]
    served: int | None
    total: int
    next: str | None = Field(description="the cursor of the next page")


class ReleaseResult(BaseModel):
    """A change of what the gallery serves: the release, and the document after it."""

    release: ReleaseSummary
    config: DocumentSummary


SERVED: dict[int | str, dict[str, object]] = {
    200: {"model": ReleaseResult, "description": "It is served already"}
}


@router.post(
    "",
    status_code=201,
    response_model=ReleaseResult,
    responses=SERVED
    | problems(
        "no-such-document", "invalid", "changed", "precondition-failed", "digest-required",
        "not-ready-to-release",
        "key-reused",
    ),
    summary="Release the working copy",
)  # fmt: skip
def promote_(
    name: str, request: Request, at: AtDesk, who: Publisher, once: AskedOnce, match: IfMatch,
    body: ReleaseRequest | None = None,
) -> Response:  # fmt: skip
    """Release the working copy as it was seen (`digest` or `If-Match`), and serve it in the gallery.

    It must be approved and validated; an approver may decide to do without a validation (`unvalidated`). A
    release stays as it is; later changes are of the working copy.
    """
    said = body or ReleaseRequest()
    if said.unvalidated:
        who.needs(SCOPE)
    with at.gallery.change(act(request, who, "release", said.note)) as change:
        stored = change.expect(name, None)
        change.expect(name, seen_versions(match, said.digest, name))
        if said.digest is not None and said.digest != stored.digest:
            raise DocumentError("changed", path=stored.path, name=name, now=stored.digest, seen=said.digest)
        summary, release, new = promote(change, name, said.note, unvalidated=said.unvalidated)
        data = {"release": release_json(release, served=True), "config": config_json(summary)}
        headers = {
            "ETag": etag(summary.version), "Location": f"/v1/configs/{name}/releases/{release.number}"
        }  # fmt: skip
        return once.answer(change.connection, data, 201 if new else 200, headers)


@router.get("", response_model=ReleasePage, responses=problems("no-such-document"), summary="All releases")
def list_(
    name: str,
    at: AtDesk,
    _who: Reader,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[int | None, Query(ge=1, le=MOST)] = None,
) -> dict[str, object]:
    """List releases, the newest first, each with what it changed; those of a deleted document as well."""
    with at.database.reading() as connection:
        need_history(connection, name)
        found = rows.page(connection, name, limit + 1, cursor)
        number, total = releases.release(connection, name), rows.count(connection, name)
    before = [*found[1:], None][: len(found)]
    items = [
        release_json(one, served=one.number == number, before=_before(one, last))
        for one, last in zip(found, before, strict=True)
    ][:limit]
    more = len(found) > limit
    return {
        "items": items,
        "served": number,
        "total": total,
        "next": str(found[limit - 1].number) if more else None,
    }


@router.get(
    "/{number}", response_model=ReleaseDocument, responses=problems("no-such-release"), summary="One release"
)
def get_(name: str, number: Number, at: AtDesk, _who: Reader) -> dict[str, object]:
    """Return a release with the text that was released, and what it changed."""
    with at.database.reading() as connection:
        release = need(connection, name, number)
        last = rows.get(connection, name, number - 1)
        served = releases.release(connection, name) == number
    whole = release_json(release, served=served, before=_before(release, last))
    return whole | {"text": release.text, "data": json.loads(release.data)}


@router.get(
    "/{number}/receipt",
    response_model=dict[str, object],
    responses=problems("no-such-release"),
    summary="The receipt of a release",
)
def receipt(name: str, number: Number, at: AtDesk, _who: Reader) -> Response:
    """Return evidence, reviews and validation as they were when the release was made."""
    with at.database.reading() as connection:
        text = rows.receipt(connection, need(connection, name, number))
    return Response(text or "{}", media_type="application/json")


@router.post(
    "/{number}/withdraw",
    response_model=ReleaseResult,
    responses=problems("no-such-document", "no-such-release", "withdrawn", "key-reused"),
    summary="Withdraw a release",
)
def withdraw_(
    name: str, number: Number, request: Request, at: AtDesk, who: Publisher, once: AskedOnce,
    body: Note | None = None,
) -> Response:  # fmt: skip
    """Withdraw a release for good. Where it was served, the entry is removed; no other takes its place."""
    note = None if body is None else body.note
    with at.gallery.change(act(request, who, "withdraw", note)) as change:
        summary, release = withdraw(change, name, number, note)
        data = {"release": release_json(release, served=False), "config": config_json(summary)}
        return once.answer(change.connection, data, 200, {"ETag": etag(summary.version)})


@router.post(
    "/{number}/rollback",
    response_model=ReleaseResult,
    responses=problems(
        "no-such-document", "no-such-release", "withdrawn", "not-ready-to-release", "key-reused"
    ),
    summary="Serve an earlier release again",
)
def rollback(
    name: str, number: Number, request: Request, at: AtDesk, who: Publisher, once: AskedOnce,
    body: Note | None = None,
) -> Response:  # fmt: skip
    """Serve this release in place of the present one. The working copy stays as it is."""
    note = None if body is None else body.note
    with at.gallery.change(act(request, who, "roll back", note)) as change:
        summary, release = roll_back(change, name, number)
        data = {"release": release_json(release, served=True), "config": config_json(summary)}
        return once.answer(change.connection, data, 200, {"ETag": etag(summary.version)})


def release_json(
    release: Release, *, served: bool, before: Sequence[Mapping[str, object]] | None = None
) -> dict[str, object]:
    """Return a release as a response; ``before`` are its changes from the release before."""
    data = json.loads(release.data)
    block, parameters = data.get("importer") or {}, data.get("parameters") or {}
    withdrawal = {"by": release.withdrawn_by, "at": release.withdrawn_at, "why": release.withdrawn_why}
    return {
        "name": release.name, "release": release.number, "version": release.version,
        "digest": release.digest, "served": served, "model": block.get("model_id") or parameters.get("model"),
        "revision": block.get("revision"), "backend": data.get("backend"), "by": release.by,
        "at": release.at, "why": release.why,
        "withdrawn": None if release.withdrawn_at is None else withdrawal,
        "losses": [*release.entry.lost], "changes": before,
    }  # fmt: skip


def _before(release: Release, last: Release | None) -> list[dict[str, object]] | None:
    """Return the changes from the release before."""
    if last is None:
        return None
    return [change_json(c) for c in differences(json.loads(last.data), json.loads(release.data))]


router_restore = APIRouter(prefix="/v1", tags=["documents"], route_class=Reads)


class DeletedDocument(BaseModel):
    """A document that was deleted; ``version`` is the number of its last version."""

    name: str
    model: str | None
    backend: str | None
    version: int
    deleted_at: str


class DeletedDocuments(BaseModel):
    """A page of deleted documents, by name."""

    items: list[DeletedDocument]
    total: int
    next: str | None = Field(description="the cursor of the next page")


@router_restore.post(
    "/configs/{name}/versions/{number}/restore", response_model=DocumentSummary,
    responses=problems(
        "no-such-document", "no-such-version", "precondition-failed", "precondition-required", "invalid",
        "bad-reference", "no-directories", "needs-approver", "key-reused",
    ),
    summary="Restore an earlier version of the working copy",
)  # fmt: skip
def restore(
    name: str, number: Annotated[int, Path(ge=1, le=MOST)], request: Request, at: AtDesk, who: Importer,
    once: AskedOnce, match: IfMatch, body: Note | None = None,
) -> Response:  # fmt: skip
    """Write that version as a new one, with its evidence. The review begins anew; what the gallery serves
    stays. It needs `If-Match`.
    """
    expected, note = needed_versions(match, name), None if body is None else body.note
    with at.gallery.change(act(request, who, "restore", note)) as change:
        change.expect(name, expected)
        summary = back.restore(change, name, number, who, at.settings)
        return once.answer(change.connection, config_json(summary), 200, {"ETag": etag(summary.version)})


@router_restore.post(
    "/configs/{name}/undelete", response_model=DocumentSummary,
    responses=problems("no-such-document", "not-deleted", "key-reused"),
    summary="Bring a deleted document back",
)  # fmt: skip
def undelete(
    name: str, request: Request, at: AtDesk, who: Approver, once: AskedOnce, body: Note | None = None
) -> Response:
    """Bring a document back as it was when it was deleted. Its releases stay withdrawn."""
    note = None if body is None else body.note
    with at.gallery.change(act(request, who, "undelete", note)) as change:
        summary = back.undelete(change, name)
        return once.answer(change.connection, config_json(summary), 200, {"ETag": etag(summary.version)})


@router_restore.get(
    "/deleted", response_model=DeletedDocuments, responses=problems(), summary="Deleted documents by name"
)
def deleted_list(
    at: AtDesk, _who: Reader, limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> dict[str, object]:  # fmt: skip
    """List documents that can be brought back. Pages continue with `cursor`."""
    with at.database.reading() as connection:
        rows, total = (
            documents.page_deleted(connection, limit + 1, cursor),
            documents.count_deleted(connection),
        )
    more = len(rows) > limit
    return {"items": rows[:limit], "total": total, "next": rows[limit - 1]["name"] if more else None}
