"""``/v1/configs``: list, read, edit and delete documents, and read their parts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from json import dumps
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from importer.app.export import export_valid
from importer.document.document_keys import differences
from importer.document.edited_comments import patched
from importer.document.receipt import Receipt
from importer.document.review import change_json
from importer.document.store import StoredDocument
from importer.errors import DocumentError, ServiceError
from importer.exports import FORMATS, get
from importer.exports.base import Device
from importer.sentences import render
from importer.service.desk import AtDesk, Desk
from importer.service.domain.gallery import DocumentVersion
from importer.service.domain.grants import Caller
from importer.service.domain.import_request import Spoken
from importer.service.http.editor import Edit, edit
from importer.service.http.headers import MOST, IfMatch, IfNoneMatch, etag, needed_versions, same_etag
from importer.service.http.models import (
    Decisions,
    Document,
    DocumentPage,
    Export,
    History,
    json_object,
    merged,
)
from importer.service.http.query import ListQuery, cursor_of, parameters, position, queried
from importer.service.reads import Reads
from importer.service.security import Approver, Importer, Reader, act
from importer.storage.documents import Shown

router = APIRouter(prefix="/v1/configs", tags=["documents"], route_class=Reads)
YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
JSON = ("application/json",)
PATCHES = ("application/merge-patch+json", "application/json")
OfVersion = Annotated[int | None, Query(alias="version", ge=1, le=MOST)]
Why = Annotated[Spoken | None, Query(description="why, for the history")]
DOCUMENT = {
    "schema": {"type": "object", "title": "DocumentContent"},
    "example": {"parameters": {"temperature": 0.5}},
}
TEXT = {
    "schema": {"type": "string", "format": "binary"},
    "example": "name: qwen3-8b\nbackend: vllm\nparameters:\n  model: Qwen/Qwen3-8B\n",
}
PUT_BODY = {
    "requestBody": {"required": True, "content": {"application/yaml": TEXT, "application/json": DOCUMENT}}
}
PATCH_BODY = {"requestBody": {"required": True, "content": {PATCHES[0]: DOCUMENT, PATCHES[1]: DOCUMENT}}}


@router.get("", response_model=DocumentPage, summary="Documents by name", openapi_extra=parameters(ListQuery))
def list_(at: AtDesk, _who: Reader, query: Annotated[ListQuery, Depends(queried(ListQuery))]) -> Response:
    """List documents. Pages continue with `cursor`; `total` counts all documents of the filters."""
    sort, limit = query.sort, query.limit
    found, total = at.gallery.page(query.filters(), limit + 1, position(sort, query.cursor), sort)
    after = cursor_of(sort, found[limit - 1]) if len(found) > limit else None
    items = ",".join([one.row for one in found[:limit]])
    body = f'{{"items":[{items}],"total":{total},"next":{dumps(after)}}}'
    return Response(body, media_type="application/json")


@router.get(
    "/{name}",
    response_model=Document,
    responses={304: {"description": "It is still that version"}},
    summary="One document",
)
def get_(name: str, at: AtDesk, _who: Reader, seen: IfNoneMatch = None) -> Response:
    """Return its YAML, its data and its states; the `ETag` goes into `If-Match` of a change."""
    found = at.gallery.shown(name)
    headers = {"ETag": etag(found.version), "Cache-Control": "no-cache"}
    if same_etag(seen, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return _answer(found, headers)


@router.put("/{name}", response_model=Document, openapi_extra=PUT_BODY, summary="Replace a document")
async def replace(
    name: str, request: Request, at: AtDesk, who: Importer, match: IfMatch, why: Why = None
) -> Response:
    """Replace the text with YAML, or the data with JSON; comments stay where they can."""
    kind, body = _type(request, (*YAML, *JSON)), await request.body()

    def text(old: StoredDocument) -> str:
        return _text(body) if kind in YAML else patched(old, json_object(body))

    return await at.reading(_edit, name, request, at, who, needed_versions(match, name), why, text)


@router.patch(
    "/{name}", response_model=Document, openapi_extra=PATCH_BODY, summary="Change values of a document"
)
async def update(
    name: str, request: Request, at: AtDesk, who: Importer, match: IfMatch, why: Why = None
) -> Response:
    """Apply a JSON merge patch (RFC 7396) to the data; comments and layout stay."""
    _type(request, PATCHES)
    body = await request.body()

    def text(old: StoredDocument) -> str:
        return patched(old, merged(old.data, json_object(body)))

    return await at.reading(_edit, name, request, at, who, needed_versions(match, name), why, text)


@router.delete("/{name}", status_code=204, summary="Take a document away")
def delete(
    name: str, request: Request, at: AtDesk, who: Approver, match: IfMatch, why: Why = None
) -> Response:
    """Delete a document: its name is free, and its versions stay in the history.

    The gallery serves nothing of it any more.
    """
    expected = needed_versions(match, name)
    with at.gallery.change(act(request, who, "delete", why)) as change:
        change.expect(name, expected)
        change.remove(name)
    return Response(status_code=204)


@router.get(
    "/{name}/decisions",
    response_model=Decisions,
    response_model_exclude_unset=True,
    summary="What was decided and why",
)
def decisions(name: str, at: AtDesk, _who: Reader) -> Receipt:
    """Return each decision with its reasons and what it overruled; evidence, fit and proof."""
    return at.gallery.get(name)[1].stored.need_receipt()


@router.get(
    "/{name}/receipt", response_model=dict[str, object], summary="The receipt as it lies beside a document"
)
def receipt(name: str, at: AtDesk, _who: Reader, number: OfVersion = None) -> Response:
    """Return evidence, reviews, and the validation with every raw exchange."""
    version = at.gallery.get(name)[1] if number is None else at.gallery.version(name, number)
    stored = version.stored.receipt
    if stored is None:
        raise DocumentError("no-receipt", path=f"{name}.yaml", problem="it has none")
    return Response(stored.to_text(), media_type="application/json", headers={"ETag": etag(version.number)})


@router.get("/{name}/history", response_model=History, summary="Every version")
def history(
    name: str,
    at: AtDesk,
    _who: Reader,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[int | None, Query(ge=1, le=MOST, description="versions before this number")] = None,
) -> dict[str, object]:
    """Return who made each version, when, by which action, why, and what it changed; and all reviews.

    Pages continue with `cursor`.
    """
    found, newest, total, served = at.gallery.history(name, limit + 1, cursor)
    shown, receipt = found[:limit], newest.stored.receipt
    return {
        "versions": [_made(one, before) for one, before in zip_longest(shown, found[1 : limit + 1])],
        "reviews": [] if receipt is None else list(receipt.history),
        "served": served,
        "total": total,
        "next": shown[-1].number if len(found) > limit else None,
    }


@router.get("/{name}/versions/{number}", response_model=dict[str, object], summary="One version's text")
def version(
    name: str, number: Annotated[int, Path(ge=1, le=MOST)], at: AtDesk, _who: Reader
) -> dict[str, object]:
    """Return the YAML of that version."""
    document_version = at.gallery.version(name, number)
    return {**_made(document_version, None), "name": name, "text": document_version.text}


@router.get("/{name}/export/{kind}", response_model=Export, summary="A document for another consumer")
def export(
    name: str,
    kind: str,
    at: AtDesk,
    _who: Reader,
    device: Annotated[str | None, Query(pattern="^(gpu|cpu)$")] = None,
    approved_only: bool = False,
) -> dict[str, object]:
    """Return the files, and what they cannot carry. Formats:"""
    get(kind)  # an unknown format is an error before the document is read
    version = at.gallery.get(name)[1]
    stored = version.stored
    template = version.chat_template(stored.data)
    machine = cast("Device | None", device)
    exported, origin = export_valid(stored, template, kind, device=machine, approved_only=approved_only)
    identity = {"name": name, "format": kind, "review": origin.review, "digest": origin.digest}
    return {**identity, "files": dict(exported.files), "lost": [render(loss) for loss in exported.lost]}


export.__doc__ = f"{export.__doc__}{', '.join(FORMATS)}."


def _edit(
    name: str,
    request: Request,
    at: Desk,
    who: Caller,
    expected: list[int] | None,
    why: str | None,
    text: Edit,
) -> Response:
    found = edit(name, at, who, act(request, who, "edit", why), expected, text)
    return _answer(found, {"ETag": etag(found.version)})


def _answer(found: Shown, headers: Mapping[str, str]) -> Response:
    """Return one document: its row, its text and data, and the rest, each as it is stored."""
    text = dumps(found.text, ensure_ascii=False)
    body = f'{found.row[:-1]},"text":{text},"data":{found.data},{found.shown[1:]}'
    return Response(body, headers=dict(headers), media_type="application/json")


def _made(version: DocumentVersion, before: DocumentVersion | None) -> dict[str, object]:
    members = {k: getattr(version, k) for k in ("action", "state", "digest", "by", "at", "why")}
    changes = None
    if before is not None:
        changes = [change_json(c) for c in differences(before.document, version.document)]
    return {"version": version.number, **members, "changes": changes}


def _type(request: Request, media_types: tuple[str, ...]) -> str:
    """Return the body's media type; raises ServiceError("wrong-type")."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise ServiceError("wrong-type", type=media_type, wanted=" or ".join(media_types))
    return media_type


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise DocumentError("invalid", path="The body", problem="not UTF-8 text") from None
