"""The editor: what it completes and checks, an edit as one more version, and previews without saving."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from importer import backends
from importer.app.parser_choice import check_edited
from importer.app.study import Studied, study_snapshot
from importer.document import argument_check, engine_arguments, schema
from importer.document.document_keys import differences, digest
from importer.document.edited_comments import renewed
from importer.document.engine_arguments import Argument
from importer.document.name_allocator import Names
from importer.document.review import change_json, refuted
from importer.document.store import StoredDocument, write_all
from importer.engines import registries
from importer.errors import DocumentError, EngineError, ImporterError, ServiceError, UsageError
from importer.hub.endpoint import endpoint
from importer.reports import FORMATS
from importer.reports.html import POLICY
from importer.reports.report_model import sheet
from importer.sentences import render
from importer.service.desk import AtDesk, Desk, json_text
from importer.service.domain.document_text import checked, looked_at, placed
from importer.service.domain.gallery import check_version
from importer.service.domain.grants import Caller, admit_edit, admitted, check_references
from importer.service.domain.import_request import Import, snapshot_of
from importer.service.http.headers import MOST, IfNoneMatch, same_etag
from importer.service.http.models import FieldError
from importer.service.jobs.import_steps import need_choice
from importer.service.reads import Reads
from importer.service.security import Reader, caller, sent_key
from importer.storage.audit import AuditContext
from importer.storage.documents import Shown
from importer.version import __version__

router = APIRouter(prefix="/v1", tags=["preview"], route_class=Reads)


@router.get(
    "/editor/{backend}",
    response_model=dict[str, object],
    responses={304: {"description": "It is as before"}},
    summary="What an editor completes",
)
def editor(
    backend: Annotated[str, Path(max_length=50, description="the engine")],
    _who: Reader,
    version: Annotated[
        str | None, Query(max_length=50, pattern=r"^[0-9][0-9A-Za-z.+]*$", description="of the engine")
    ] = None,
    seen: IfNoneMatch = None,
) -> Response:
    """Return schema, arguments, types, choices and limits; of a version that is not known, those of the one
    before it. Defaults are the engine's own and not in these lists.
    """
    if backend not in backends.NAMES:
        raise EngineError("unknown-engine", name=backend, known=", ".join(backends.NAMES))
    registry = engine_arguments.load(backend, version)
    body, tag = _body(backend, None if registry is None else registry.version)
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if same_etag(seen, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


@cache
def _body(backend: str, version: str | None) -> tuple[bytes, str]:
    registry = engine_arguments.load(backend, version)
    arguments = argument_check.arguments_of(backend, version)
    configs = {} if registry is None else registry.configs
    body = json_text({
        "backend": backend, "version": version, "versions": [*engine_arguments.versions(backend)],
        "schema": schema.load("document"), "arguments": _rows(arguments),
        "configs": {name: _rows(rows) for name, rows in configs.items()},
        "variables": [] if registry is None else sorted(registry.variables),
        **_parsers(backend, version),
    }).encode()  # fmt: skip
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _parsers(backend: str, version: str | None) -> dict[str, list[str]]:
    try:
        known = registries.load(backend, version)
    except UsageError:  # no version with known parsers
        return {"tool_parsers": [], "reasoning_parsers": []}
    return {
        "tool_parsers": sorted(known.names("tool")),
        "reasoning_parsers": sorted(known.names("reasoning")),
    }


def _rows(arguments: Mapping[str, Argument]) -> list[dict[str, object]]:
    return [
        {
            "name": name, "type": argument_check.kind_name(one.kind), "choices": [*one.choices()],
            "limits": dict(one.limits), "flag": one.flag, "aliases": [*one.aliases], "many": one.many,
            "server": one.server, "config": _config(one),
        }
        for name, one in sorted(arguments.items())
    ]  # fmt: skip


def _config(one: Argument) -> str | None:
    """Return the name of the map that an argument is, alone or as one of several types."""
    if not isinstance(one.kind, Mapping):
        return None
    kinds = (one.kind, *one.kind.get("any_of", ()))
    return next(
        (str(kind["config"]) for kind in kinds if isinstance(kind, Mapping) and "config" in kind), None
    )


# Returns the new text of a document, by the present one.
Edit = Callable[[StoredDocument], str]
TRIES = 20  # of an edit that any version will do for, while others are quicker


def edit(
    name: str, at: Desk, who: Caller, act: AuditContext, expected: list[int] | None, text: Edit
) -> Shown:
    """Write another text of a document; return it as it is then.

    The text must match the schema, its references must be those of an import, and ``who`` must have the scope
    for every grant. ``expected`` are the
    versions that the edit may be of; ``None`` allows any, and the edit is made again where another one came
    first. Raises DocumentError and ServiceError: "precondition-failed", "needs-approver".
    """
    left = TRIES if expected is None else 1
    while True:
        left -= 1
        try:
            return _edit(name, at, who, act, expected, text)
        except ServiceError as error:
            if not left or error.kind != "precondition-failed":
                raise


def _edit(
    name: str, at: Desk, who: Caller, act: AuditContext, expected: list[int] | None, text: Edit
) -> Shown:
    """Check the text before the transaction, which it would hold up; raise for an edit of an old version."""
    last = at.gallery.get(name)[1]
    check_version(name, last.number, expected)
    new = text(last.stored)
    data = checked(new, name, last.stored.facts)
    check_edited(last.stored.data, data)
    admit_edit(last.stored.data, data, who, at.settings)
    new = renewed(last.stored, new)
    with at.gallery.change(act) as change:
        change.expect(name, [last.number])
        write_all({change.checkout.path(name): new})
        change.save(name)
        return change.shown(name)


PATIENCE = 1.0  # seconds that a look waits for its turn
SOON = 5  # seconds


@contextmanager
def turn(at: Desk) -> Iterator[None]:
    """Hold one of the previews that may run at a time; raises ServiceError("busy")."""
    if not at.looks.acquire(timeout=PATIENCE):  # a longer wait would hold a thread that others need
        raise ServiceError("busy", seconds=SOON)
    try:
        yield
    finally:
        at.looks.release()


def look_at_edit(body: Import, at: Desk, who: Caller) -> Studied:
    """Return the analysis of a repository, on top of the settings of the document's earlier imports.

    Raises ImporterError for a model that cannot be imported, ServiceError: "ambiguous" for a choice of
    backend, "needs-approver" for a grant that the caller may not make.
    """
    request = admitted(body, who, at.settings)
    snapshot = snapshot_of(request, at.settings)
    with at.gallery.checkout() as folder:
        request = request.after(Names(folder).known(snapshot, request.name, request.slot))
    studied = study_snapshot(snapshot, request, at.runner.bench)
    need_choice(studied, at.settings)
    return studied


router_preview = APIRouter(prefix="/v1", tags=["preview"], route_class=Reads)
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
    warnings: list[str] = Field(description="of parsers that the edit names and the import's proof refutes")
    changes: list[dict[str, object]] = Field(description="from the document in the gallery")
    digest: str | None


@router_preview.get("/me", response_model=CallerInfo, summary="Who asks, and what they may")
async def me(request: Request, at: AtDesk) -> dict[str, object]:
    """Return the caller, also without a key, so that a page can ask for one; a wrong key is refused."""
    unknown = sent_key(request) is None and not at.settings.loopback
    visitor = Caller("", frozenset()) if unknown else await caller(request)
    members = {"name": visitor.name or None, "scopes": sorted(visitor.scopes)}
    own = {
        "version": __version__,
        "backends": list(at.settings.backends),
        "hub": None if unknown else endpoint(),
    }
    return {**members, **own}


@router_preview.post(
    "/configs/{name}/check",
    response_model=CheckResult,
    openapi_extra=YAML,
    summary="Check a text without keeping it",
)
async def check(name: str, request: Request, at: AtDesk, _who: Reader) -> dict[str, object]:
    """Return each mistake with its line, and what would change; `PUT` saves it."""
    return await at.reading(_checked, name, await request.body(), at)


def _checked(name: str, body: bytes, at: Desk) -> dict[str, object]:
    stored = at.gallery.get(name)[1].stored
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise DocumentError("invalid", path="The body", problem="not UTF-8 text") from None
    data, mistakes = looked_at(text, name, stored.facts)
    if mistakes or data is None:
        return {"errors": mistakes, "warnings": [], "changes": [], "digest": None}
    try:
        check_edited(stored.data, data)
        check_references(stored.data, data, at.settings)
    except ImporterError as error:
        return {"errors": placed(text, error), "warnings": [], "changes": [], "digest": None}
    changes = [change_json(change) for change in differences(stored.data, data)]
    warned = [render(one.reason) for one in refuted(replace(stored, data=data))]
    return {"errors": [], "warnings": warned, "changes": changes, "digest": digest(data)}


@router_preview.get(
    "/configs/{name}/report/{kind}",
    response_class=Response,
    responses={
        200: {
            "content": {media: {"schema": {"type": TYPES.get(media, "string")}} for media in MEDIA.values()}
        }
    },
    summary="Its validation as a report",
)
def report(
    name: str,
    kind: Literal["terminal", "json", "junit", "html"],
    at: AtDesk,
    _who: Reader,
    number: Annotated[int | None, Query(alias="version", ge=1, le=MOST)] = None,
) -> Response:
    """Return every probe of every run with its raw exchanges, in the form that a person, a program, a CI
    system or a browser reads.
    """
    version = at.gallery.get(name)[1] if number is None else at.gallery.version(name, number)
    chosen = FORMATS[kind]
    media = MEDIA[chosen.ending]
    headers = {"Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'; sandbox"}
    return Response(
        chosen.write(sheet(version.stored)), headers=headers, media_type=f"{media}; charset=utf-8"
    )
