"""Failures over HTTP: RFC 9457 problem details, whose status follows from the kind by one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, cast

from fastapi import Request
from fastapi.responses import JSONResponse

from importer.errors import (
    KINDS,
    DocumentError,
    EngineError,
    HubError,
    ImporterError,
    InternalError,
    Interrupted,
    RemoteError,
    RepositoryError,
    SandboxError,
    ServiceError,
    UsageError,
    ValidationError,
    sentence_row,
)
from importer.sentences import row
from importer.service import messages
from importer.service.domain.failures import failure
from importer.storage.jobs import Failure

MEDIA_TYPE = "application/problem+json"
BY_BRANCH: Mapping[type[ImporterError], int] = {
    UsageError: 422, HubError: 502, RepositoryError: 422, DocumentError: 422, EngineError: 503,
    ValidationError: 422, ServiceError: 400, RemoteError: 502, SandboxError: 503,
    InternalError: 500, Interrupted: 503,
}  # fmt: skip
# What differs from its branch.
BY_KIND: Mapping[str, int] = {
    "not-found": 404, "revision-not-found": 404, "gated": 403, "private": 403, "forbidden": 403,
    "rate-limited": 503, "not-cached": 503, "refused-host": 422, "unknown-format": 404,
    "exists": 409, "conflict": 409, "edited": 409, "changed": 409, "no-such-document": 404,
    "not-approved": 409, "needs-approval": 409, "cannot-export": 409, "no-receipt": 409, "newer-receipt": 409,
    "never-validated": 409, "cannot-write": 507,
    "unknown-engine": 422, "weights-not-local": 409, "no-weights": 409, "not-measured": 409,
    "bad-request": 422,
    "no-key": 401, "wrong-scope": 403, "foreign-page": 403, "foreign-host": 421, "no-such-page": 404,
    "page-not-built": 503,
    "folder-beside": 409, "program-missing": 503,
    "needs-approver": 403, "code-not-approved": 409,
    "wrong-method": 405, "no-such-job": 404, "no-such-version": 404,
    "precondition-failed": 412, "precondition-required": 428,
    "not-ended": 409, "has-ended": 409, "ambiguous": 409, "no-directories": 422,
    "body-too-large": 413, "wrong-type": 415, "too-many": 429, "gave-up": 500,
    "no-database": 503, "too-slow": 408, "busy": 503, "not-ready": 503,
    "digest-required": 428, "not-ready-to-release": 409,
    "other-backend": 409, "other-device": 409, "too-many-connections": 503,
}  # fmt: skip


class ProblemDetails(Failure):
    """The members of a problem, as RFC 9457 and this service name them."""

    type: str
    title: str
    status: int
    instance: NotRequired[str]
    request_id: NotRequired[str]


def status_of(kind: str) -> int:
    """Return the HTTP status of a kind of failure."""
    return BY_KIND.get(kind, BY_BRANCH[KINDS[kind]])


def problem(error: ImporterError, errors: Sequence[Mapping[str, object]] = ()) -> ProblemDetails:
    """Return the problem's members; ``errors`` are single mistakes with the field each is about."""
    return problem_of(failure(error, errors))


def problem_of(failed: Failure) -> ProblemDetails:
    """Return the problem of a failure as ``failure`` describes it and jobs keep it."""
    kind = failed["kind"]
    head = {"type": f"/problems/{kind}", "title": title(kind), "status": status_of(kind)}
    return cast("ProblemDetails", {**head, "detail": failed["detail"], **failed})


def title(kind: str) -> str:
    """Return a kind as a title, the same for every occurrence."""
    return kind.replace("-", " ").capitalize()


def explained(kind: str) -> dict[str, object] | None:
    """Return the members of ``/problems/KIND``; ``None`` for a kind that is not met over HTTP."""
    if kind not in messages.HINTS:
        return None
    return {
        "kind": kind,
        "title": title(kind),
        "status": status_of(kind),
        "sentence": sentence_row(kind, messages.INSTEAD),
        "hint": row(messages.HINTS[kind]),
    }


def answer(
    request: Request,
    error: ImporterError,
    errors: Sequence[Mapping[str, object]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a failure as a response."""
    members = problem(error, errors)
    members["instance"] = request.url.path
    if ident := getattr(request.state, "id", None):
        members["request_id"] = ident
    return JSONResponse(
        members, members["status"], headers=headers_of(error) | dict(headers or {}), media_type=MEDIA_TYPE
    )


def headers_of(error: ImporterError) -> dict[str, str]:
    """Return the headers of a failure: when to ask again, and how to send a key."""
    seconds = error.details.get("seconds")
    headers = {"Retry-After": f"{float(seconds):.0f}"} if isinstance(seconds, int | float) else {}
    if error.kind == "no-key":
        headers["WWW-Authenticate"] = "Bearer"
    return headers


# The answer of every route to what it refuses; ``/problems/KIND`` explains each kind.
REFUSED: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457); its `kind` says which",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
LOCATION = {"Location": {"description": "where the job is", "schema": {"type": "string"}}}


def accepted(failing: str = "") -> dict[int | str, dict[str, object]]:
    """Return the response 202 of a job; ``failing`` describes a failure that clients have to handle."""
    description = "It was accepted as a job" + (f", which fails {failing}" if failing else "")
    return {202: {"description": description, "headers": LOCATION}}
