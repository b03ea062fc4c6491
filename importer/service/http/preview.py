"""Previews: the caller's scopes, reports, and a check of an edit without saving it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from importer.app.parser_choice import check_edited
from importer.config_file.diff import differences, digest
from importer.config_file.review import change_json
from importer.errors import DocumentError, ImporterError
from importer.hub.endpoint import endpoint
from importer.reports import FORMATS
from importer.reports.html import POLICY
from importer.reports.report_model import sheet
from importer.service.desk import AtDesk, Desk
from importer.service.domain.document_text import looked_at
from importer.service.domain.edits import check_references
from importer.service.domain.grants import Caller
from importer.service.http.etags import MOST
from importer.service.http.response_models import FieldError
from importer.service.problems import problems
from importer.service.security.auth import Reader, caller, sent_key
from importer.version import __version__

router = APIRouter(prefix="/v1", tags=["preview"])
YAML = {
    "requestBody": {
        "required": True,
        "content": {
            "application/yaml": {
                "schema": {"type": "string", "format": "binary"},
                "example": "name: qwen3-8b\n",
            }
        },
    }
}
TYPES = {"application/json": "object"}
MEDIA = {".txt": "text/plain", ".json": "application/json", ".xml": "application/xml", ".html": "text/html"}


class CallerInfo(BaseModel):
    """The caller, and the backends of this server."""

    name: str | None = Field(description="the key's name; null where a key is needed and none was sent")
    scopes: list[str]
    version: str
    backends: list[str] = Field(description="the engines that imports may be for")
    hub: str | None = Field(description="the address of the Hub, for links to its pages; null without a key")


class CheckResult(BaseModel):
    """The mistakes of an edited text, and what it would change."""

    errors: list[FieldError]
    changes: list[dict[str, Any]] = Field(description="from the document in the gallery")
    digest: str | None


@router.get("/me", response_model=CallerInfo, responses=problems(), summary="Who asks, and what they may")
async def me(request: Request, at: AtDesk) -> dict[str, Any]:
    """Return the caller, also without a key, so that a page can ask for one; a wrong key is refused."""
    unknown = sent_key(request) is None and not at.settings.loopback
    visitor = Caller("", frozenset()) if unknown else await caller(request, at)
    members = {"name": visitor.name or None, "scopes": sorted(visitor.scopes)}
    own = {
        "version": __version__,
        "backends": list(at.settings.backends),
        "hub": None if unknown else endpoint(),
    }
    return {**members, **own}


@router.post(
    "/configs/{name}/check",
    response_model=CheckResult,
    responses=problems("no-such-document", "invalid"),
    openapi_extra=YAML,
    summary="Check a text without keeping it",
)
async def check(name: str, request: Request, at: AtDesk, who: Reader) -> dict[str, Any]:
    """Return each mistake with its line, and what would change; `PUT` saves it."""
    del who
    return await at.reading(_checked, name, await request.body(), at)


def _checked(name: str, body: bytes, at: Desk) -> dict[str, Any]:
    stored = at.gallery.get(name)[1].stored
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise DocumentError("invalid", path="The body", problem="not UTF-8 text") from None
    data, mistakes = looked_at(text, name, stored.facts)
    if mistakes or data is None:
        return {"errors": mistakes, "changes": [], "digest": None}
    try:
        check_edited(stored.data, data)
        check_references(stored.data, data, at.settings)
    except ImporterError as error:
        return {"errors": error.details["errors"], "changes": [], "digest": None}
    changes = [change_json(change) for change in differences(stored.data, data)]
    return {"errors": [], "changes": changes, "digest": digest(data)}


@router.get(
    "/configs/{name}/report/{kind}",
    response_class=Response,
    responses={
        200: {
            "content": {media: {"schema": {"type": TYPES.get(media, "string")}} for media in MEDIA.values()}
        },
        **problems("no-such-document", "never-validated"),
    },
    summary="Its validation as a report",
)
def report(
    name: str,
    kind: Literal["terminal", "json", "junit", "html"],
    at: AtDesk,
    who: Reader,
    number: Annotated[int | None, Query(alias="version", ge=1, le=MOST)] = None,
) -> Response:
    """Return every probe of every run with its raw exchanges, in the form that a person, a program, a CI
    system or a browser reads.
    """
    del who
    version = at.gallery.get(name)[1] if number is None else at.gallery.version(name, number)
    chosen = FORMATS[kind]
    media = MEDIA[chosen.ending]
    headers = {"Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'; sandbox"}
    return Response(
        chosen.write(sheet(version.stored)), headers=headers, media_type=f"{media}; charset=utf-8"
    )
