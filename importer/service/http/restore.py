"""Restore of earlier versions, and of deleted documents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from importer.service.desk import AtDesk
from importer.service.domain import restore as back
from importer.service.http.etags import MOST, IfMatch, etag, needed
from importer.service.http.idempotency import AskedOnce
from importer.service.http.request_models import Note
from importer.service.http.summary_models import DocumentSummary, config_json
from importer.service.problems import problems
from importer.service.security.auth import Approver, Importer, Reader, act
from importer.storage import deleted

router = APIRouter(prefix="/v1", tags=["documents"])


class DeletedDocument(BaseModel):
    """A document that was deleted; ``version`` is the number of its last version."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "name": "qwen3-8b", "model": "Qwen/Qwen3-8B", "backend": "vllm", "version": 7,
        "deleted_at": "2026-11-22T13:09:00+00:00",
    }]})  # fmt: skip

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


@router.post(
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
    if (answered := once.replay()) is not None:
        return answered
    expected, note = needed(match, name), None if body is None else body.note
    with at.gallery.change(act(request, who, "restore", note)) as change:
        change.expect(name, expected)
        summary = back.restore(change, name, number, who, at.settings)
        return once.answer(change.connection, config_json(summary), 200, {"ETag": etag(summary.version)})


@router.post(
    "/configs/{name}/undelete", response_model=DocumentSummary,
    responses=problems("no-such-document", "not-deleted", "key-reused"),
    summary="Bring a deleted document back",
)  # fmt: skip
def undelete(
    name: str, request: Request, at: AtDesk, who: Approver, once: AskedOnce, body: Note | None = None
) -> Response:
    """Bring a document back as it was when it was deleted. Its releases stay withdrawn."""
    if (answered := once.replay()) is not None:
        return answered
    note = None if body is None else body.note
    with at.gallery.change(act(request, who, "undelete", note)) as change:
        summary = back.undelete(change, name)
        return once.answer(change.connection, config_json(summary), 200, {"ETag": etag(summary.version)})


@router.get(
    "/deleted", response_model=DeletedDocuments, responses=problems(), summary="Deleted documents by name"
)
def deleted_list(
    at: AtDesk, who: Reader, limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> dict[str, Any]:  # fmt: skip
    """List documents that can be brought back. Pages continue with `cursor`."""
    del who
    with at.database.reading() as connection:
        rows, total = deleted.page(connection, limit + 1, cursor), deleted.count(connection)
    more = len(rows) > limit
    return {"items": rows[:limit], "total": total, "next": rows[limit - 1]["name"] if more else None}
