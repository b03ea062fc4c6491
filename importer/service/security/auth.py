"""Authentication: an API key, or the local user on loopback."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer
from fastapi.security.api_key import APIKeyHeader

from importer.errors import ServiceError
from importer.frozen import frozen
from importer.service.desk import Desk, desk
from importer.service.domain.grants import Caller
from importer.service.security.middleware import Limiter
from importer.service.settings import Settings
from importer.storage import keys
from importer.storage.actors import LOCAL
from importer.storage.audit import AuditContext

REFUSED = 60  # wrong keys a minute for one address
SAFE = ("GET", "HEAD", "OPTIONS")
# For OpenAPI; the keys are read below, so that a refusal has importer's own form.
SCHEMES = (
    HTTPBearer(auto_error=False, description="An API key; none is needed on loopback."),
    APIKeyHeader(name="x-api-key", auto_error=False),
)


@frozen
class Limits:
    """Requests a minute: changes and other requests of each caller, refused keys of each address."""

    changes: Limiter
    reads: Limiter
    refused: Limiter


def limits(settings: Settings) -> Limits:
    """Return the limiters with the settings' rates."""
    return Limits(
        Limiter(settings.rate, "changes"), Limiter(settings.reads, "reads"), Limiter(REFUSED, "refused")
    )


def sent_key(request: Request) -> str | None:
    """Return the key of a request: a bearer token, or the header X-API-Key; "" for another scheme."""
    header = request.headers.get("authorization")
    if header is None:
        return request.headers.get("x-api-key")
    scheme, _, rest = header.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""


async def caller(request: Request, at: Annotated[Desk, Depends(desk)]) -> Caller:
    """Return the caller; raises ServiceError: "no-key", "too-many"."""
    key = sent_key(request)
    if key is None and at.settings.loopback:  # nothing is looked up
        return identify(request, at, key)
    return await run_in_threadpool(identify, request, at, key)


def identify(request: Request, at: Desk, sent: str | None) -> Caller:
    """Return the caller with this key; raises ServiceError: "no-key", "too-many"."""
    limited = cast(Limits, request.app.state.limits)
    if sent is None and at.settings.loopback:
        client, ident = Caller(LOCAL, frozenset(keys.SCOPES)), LOCAL
    else:
        with at.database.reading() as connection:
            key = keys.find(connection, sent or "")
        if key is None:
            _count(request, limited.refused, address(request))
            raise ServiceError("no-key", sent=sent is not None)
        client, ident = Caller(key.name, key.scopes), key.id
    _count(request, limited.reads if request.method in SAFE else limited.changes, ident)
    request.state.caller = client.name
    return client


def _count(request: Request, limiter: Limiter, who: str) -> None:
    """Count a request, and put what is left into the headers of its answer."""
    try:
        limiter.count(who)
    finally:
        request.state.allowance = limiter.headers(who)


def needs(scope: str) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that yields the caller and requires a scope."""

    async def checked(  # in the loop: each other function costs a thread
        client: Annotated[Caller, Depends(caller)],
        _bearer: Annotated[object, Depends(SCHEMES[0])],
        _header: Annotated[object, Depends(SCHEMES[1])],
    ) -> Caller:
        client.needs(scope)
        return client

    return checked


Reader = Annotated[Caller, Depends(needs("read"))]
Importer = Annotated[Caller, Depends(needs("import"))]
Approver = Annotated[Caller, Depends(needs("approve"))]
Publisher = Annotated[Caller, Depends(needs("publish"))]
Admin = Annotated[Caller, Depends(needs("admin"))]


def act(request: Request, who: Caller, action: str, why: str | None = None) -> AuditContext:
    """Return the audit context of a caller's action."""
    return AuditContext(who.name, action, why, getattr(request.state, "id", None), address(request))


def address(request: Request) -> str:
    """Return the address of the client."""
    return "" if request.client is None else request.client.host
