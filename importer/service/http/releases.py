"""What the gallery serves of a document: release, roll-back, withdrawal; and restores of versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from importer.errors import DocumentError
from importer.service.desk import AtDesk, json_answer
from importer.service.domain import releases as back
from importer.service.http.headers import MOST, IfMatch, etag, needed_versions, seen_versions
from importer.service.http.models import DocumentSummary, Note, ReleaseRequest, config_json
from importer.service.reads import Reads
from importer.service.security import Approver, Importer, act

router = APIRouter(prefix="/v1/configs/{name}", tags=["releases"], route_class=Reads)
Number = Annotated[int, Path(ge=1, le=MOST)]


@router.post("/release", response_model=DocumentSummary, summary="Serve a version in the gallery")
def release(
    name: str, request: Request, at: AtDesk, who: Approver, match: IfMatch,
    body: ReleaseRequest | None = None,
) -> Response:  # fmt: skip
    """Serve the working copy as it was seen (`digest` or `If-Match`), or an earlier `version`: a roll-back.

    What is served must be approved and validated; an approver may decide to do without a validation
    (`unvalidated`). The entry stays as it is until another release; later changes are of the working copy.
    """
    said = body or ReleaseRequest()
    with at.gallery.change(act(request, who, "release", said.note)) as change:
        stored = change.expect(name, None)
        if said.version is None:
            change.expect(name, seen_versions(match, said.digest, name))
            if said.digest not in (None, stored.digest):
                raise DocumentError(
                    "changed", path=stored.path, name=name, now=stored.digest, seen=said.digest
                )
        summary = back.release(change, name, said.version, unvalidated=said.unvalidated)
        return json_answer(config_json(summary), 200, {"ETag": etag(summary.version)})


@router.post("/withdraw", response_model=DocumentSummary, summary="Serve no version any more")
def withdraw(name: str, request: Request, at: AtDesk, who: Approver, body: Note | None = None) -> Response:
    """Take the document's entry out of the gallery; no other version takes its place."""
    note = None if body is None else body.note
    with at.gallery.change(act(request, who, "withdraw", note)) as change:
        summary = back.withdraw(change, name)
        return json_answer(config_json(summary), 200, {"ETag": etag(summary.version)})


@router.post(
    "/versions/{number}/restore",
    response_model=DocumentSummary,
    summary="Restore an earlier version of the working copy",
)
def restore(
    name: str, number: Number, request: Request, at: AtDesk, who: Importer, match: IfMatch,
    body: Note | None = None,
) -> Response:  # fmt: skip
    """Write that version as a new one, with its evidence. The review begins anew; what the gallery serves
    stays. It needs `If-Match`. A deleted document comes back, for a key with the scope `approve`.
    """
    expected, note = needed_versions(match, name), None if body is None else body.note
    with at.gallery.change(act(request, who, "restore", note)) as change:
        summary = back.restore(change, name, number, who, at.settings, expected)
        return json_answer(config_json(summary), 200, {"ETag": etag(summary.version)})
