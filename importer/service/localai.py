"""LocalAI's forms: keys where its clients send them, requests, the states of jobs, and failures."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from importer.document import name_allocator
from importer.errors import ImporterError, ServiceError
from importer.service import messages
from importer.service.desk import AtDesk, json_answer
from importer.service.domain.grants import Caller
from importer.service.domain.import_request import Import
from importer.service.problems import headers_of, status_of
from importer.service.security import identify
from importer.storage.jobs import Job


class ImportUri(BaseModel):
    """What to import; unknown members are ignored, as LocalAI does."""

    uri: str
    preferences: dict[str, object] | None = None  # backend, name and description count


Handler = Callable[[Request], Coroutine[Any, Any, Response]]
# What keeps its status; all else that a request is to blame for is 400.
UNCHANGED = (401, 403, 404, 413, 429)
# Others come of the Hub, and are no word on the caller's key.
OWN_403 = ("wrong-scope", "needs-approver", "foreign-page")
OWN_STEPS = ("bad-request", "bad-value")  # whose next step is a description without these routes
NO_KEY = "An authentication key is required"
NO_SCOPE = "Admin access required"


class Envelope(APIRoute):
    """A route that fails with ``{"error": {"code", "message", "type"}}``."""

    def get_route_handler(self) -> Handler:
        """Return the handler with failures in LocalAI's envelope."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except (ImporterError, RequestValidationError, HTTPException, OperationalError) as error:
                return failure(error)

        return answered


def failure(error: Exception, *, prefix: str = "") -> Response:
    """Return the response, its message behind ``prefix``."""
    known = _known(error)
    status, headers = wire_status(known), headers_of(known)
    hint = "" if known.kind in OWN_STEPS else messages.hint(known)
    message = f"{prefix}{messages.detail(known)} {hint}".strip()
    kind = ""
    if known.kind == "no-key":
        message, kind = NO_KEY, "invalid_request_error"
    elif known.kind in ("wrong-scope", "needs-approver"):
        message, kind = NO_SCOPE, "authorization_error"
    return json_answer({"error": {"code": status, "message": message, "type": kind}}, status, headers)


def wire_status(error: ImporterError) -> int:
    """Return 400 or 404 where LocalAI would answer 500 for a mistake in the request."""
    if error.kind == "private":  # private or missing: the Hub gives one answer for both
        return 404
    status = status_of(error.kind)
    kept = status >= 500 or (status in UNCHANGED and (status != 403 or error.kind in OWN_403))
    return status if kept else 400


def _known(error: Exception) -> ImporterError:
    if isinstance(error, ImporterError):
        return error
    if isinstance(error, RequestValidationError):
        problem = "; ".join(f"{'.'.join(map(str, e['loc']))}: {messages.mistake(e)}" for e in error.errors())
        return ServiceError("bad-request", problem=problem)
    if isinstance(error, OperationalError):
        return ServiceError("no-database", seconds=5)
    return ServiceError("bad-request", problem=str(getattr(error, "detail", error)))


HEADERS = ("x-api-key", "xi-api-key")
COOKIE = "token"


def sent_key(request: Request) -> str | None:
    """Return the key of a request: ``Authorization``, with or without ``Bearer``, a header of its own, or the
    cookie ``token``.
    """
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, rest = header.partition(" ")
        return rest.strip() if scheme.lower() == "bearer" else header
    headers = (request.headers.get(name) for name in HEADERS)
    return next((key for key in headers if key is not None), request.cookies.get(COOKIE))


def needs_keys(scope: str) -> Callable[..., Caller]:
    """Return a dependency that yields the caller and requires a scope."""

    def checked(request: Request, at: AtDesk) -> Caller:
        client = identify(request, at, sent_key(request))
        client.needs(scope)
        return client

    return checked


async def gallery_reader(request: Request, at: AtDesk) -> None:
    """Check that the gallery may be read; LocalAI sends only an address, whose user part may be the key.

    Raises ServiceError: "no-key", "wrong-scope", "too-many".
    """
    if at.settings.open_gallery:
        return
    key = sent_key(request)
    if key is None and at.settings.loopback:  # nothing is looked up
        return
    client = await run_in_threadpool(identify, request, at, None if key is None else _of_basic(key))
    client.needs("read")


def _of_basic(header: str) -> str:
    """Return the password of ``Basic …``, the user's name without one, or the value of another scheme."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return header
    try:
        user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password or user


Reader = Annotated[Caller, Depends(needs_keys("read"))]
Importer = Annotated[Caller, Depends(needs_keys("import"))]
GalleryReader = Depends(gallery_reader)


FILE = "file://"
COUNT = {"backend": "backend", "name": "name"}  # LocalAI's preferences, and the fields of an import request


def import_request(body: ImportUri) -> Import:
    """Return the import request of a URI; raises ServiceError("bad-request")."""
    preferences = body.preferences or {}
    fields = {
        field: preferences[key] for key, field in COUNT.items() if preferences.get(key) not in (None, "")
    }
    if isinstance(fields.get("name"), str):
        fields["name"] = fitting(str(fields["name"]))
    if preferences.get("description"):
        fields["set"] = {"description": preferences["description"]}
    try:
        return Import.model_validate({"reference": body.uri.strip().removeprefix(FILE), **fields})
    except ValidationError as error:
        mistake = error.errors()[0]
        problem = f"{'.'.join(map(str, mistake['loc'])) or 'it'}: {messages.mistake(mistake)}"
        raise ServiceError("bad-request", problem=problem) from None


def fitting(name: str) -> str:
    """Return a name as documents have them: LocalAI allows capitals and spaces (``Qwen3-8B``).

    A name without any of a-z and 0-9, or with control characters, stays and is refused as such.
    """
    usable = name.isprintable() and re.search(r"[a-z0-9]", name.lower())
    return name_allocator.slug(name) if usable and not name_allocator.ALLOWED.fullmatch(name) else name


# Phase and progress at which a step begins; LocalAI's own downloads reach 90 and its commit 99.
STEPS: Mapping[str | None, tuple[str, float]] = {
    None: ("queued", 0.0), "resolve": ("resolving", 10.0), "decide": ("resolving", 40.0),
    "prove": ("verifying", 90.0), "store": ("committing", 99.0),
}  # fmt: skip


def status(job: Job) -> dict[str, object]:
    """Return a job as OpStatus; a success is processed, at 100, with the message "completed"."""
    name = job.config or job.request.get("name") or str(job.request.get("reference", ""))
    idle: dict[str, object] = {
        "deletion": False, "file_name": "", "processed": False, "message": "", "progress": 0.0,
        "file_size": "", "downloaded_size": "", "gallery_element_name": name,
        "cancelled": False, "cancellable": False,
    }  # fmt: skip
    return idle | _state(job, name)


def _state(job: Job, name: str) -> dict[str, object]:
    if job.state == "succeeded":
        return {"processed": True, "progress": 100.0, "message": "completed"}
    if job.state == "cancelled":
        return {"processed": True, "cancelled": True, "message": "cancelled"}
    if job.state in ("failed", "waiting"):
        error = "it failed" if job.error is None else job.error["detail"]
        failure = {"error": error, "message": f"error: {error}", "gallery_element_name": ""}
        return {"processed": True, **failure}
    phase, progress = STEPS.get(job.step, STEPS[None])
    message = "queued" if phase == "queued" else job.says or f"processing model: {name}"
    return {"message": message, "phase": phase, "progress": progress, "cancellable": True}
