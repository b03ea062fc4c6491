"""``/api/models/config-json`` as LocalAI has it: a document's data, and a deep merge into them."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from importer.config import now
from importer.config_file.edit_comments import patched
from importer.config_file.effective import Editor
from importer.config_file.store import StoredDocument
from importer.service.desk import AtDesk, Desk, json_answer
from importer.service.domain.grants import Caller
from importer.service.http.etags import IfMatch, etag, numbers
from importer.service.http.localai import FAILED
from importer.service.http.request_models import json_object
from importer.service.http.save_edit import edit
from importer.service.localai import models
from importer.service.localai.imports import merge
from importer.service.localai.keys import Importer, Reader
from importer.service.security.auth import act

router = APIRouter(prefix="/api/models/config-json", tags=["localai"], route_class=models.Flat)
READ: dict[int | str, dict[str, Any]] = FAILED | {
    404: {"model": models.FlatFailed, "description": "There is no such document"},
    429: {"model": models.FlatFailed, "description": FAILED[429]["description"]},
}
CHANGED: dict[int | str, dict[str, Any]] = READ | {
    400: {"model": models.FlatFailed, "description": "It is no patch, or the result is no document"},
    409: {"model": models.FlatFailed, "description": "Somebody was quicker"},
}
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object"}, "example": {"parameters": {"temperature": 0.5}},
            }
        },
    }
}  # fmt: skip
EMPTY = "request body is empty or unreadable"


@router.get("/{name}", response_model=dict[str, Any], responses=READ, summary="A document's data")
def config(name: str, at: AtDesk, who: Reader) -> Response:
    """Return the document's data as written, without defaults."""
    del who
    summary, version = at.gallery.get(name)
    return json_answer(version.stored.data, headers={"ETag": etag(summary.version)})


@router.patch(
    "/{name}",
    response_model=models.Patched,
    responses=CHANGED,
    openapi_extra=BODY,
    summary="Change values of a document",
)
async def patch_config(name: str, request: Request, at: AtDesk, who: Importer, match: IfMatch) -> Response:
    """Apply a deep merge: lists replace, maps of free keys such as `engine_args` are replaced whole, null is
    a value.

    Comments stay. The name cannot be changed.
    """
    body = await request.body()
    return await at.reading(_patched, name, body, request, at, who, numbers(match))


def _patched(
    name: str, body: bytes, request: Request, at: Desk, who: Caller, expected: list[int] | None
) -> Response:
    patch = json_object(body) if body.strip() else {}
    if not patch:
        return json_answer({"error": EMPTY}, 400)

    def text(old: StoredDocument) -> str:
        return patched(old, merge(old.data, patch), Editor(who.name, now()))

    summary, _ = edit(name, at, who, act(request, who, "edit"), expected, text)
    return json_answer(
        {
            "success": True,
            "message": f"Model '{name}' updated successfully",
            "config_revision": re.sub("^sha256:", "", summary.digest),
            "pending_cleanup": 0,
        },
        headers={"ETag": etag(summary.version)},
    )
