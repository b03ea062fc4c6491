"""Who asks, and what they may: an API key, or nobody in particular on loopback."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.api_key import APIKeyHeader

from importer.errors import ServiceError
from importer.gallery import keys
from importer.gallery.act import Act
from importer.service.desk import Desk, desk

LOCAL = "local"  # who asks on loopback without a key
MINUTE = 60.0
SAFE = ("GET", "HEAD", "OPTIONS")
# Told to OpenAPI; what they read is read below, so that a key is refused in our own words.
SCHEMES = (
    HTTPBearer(auto_error=False, description="An API key; none is needed on loopback."),
    APIKeyHeader(name="x-api-key", auto_error=False),
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; ``scopes`` is what they may."""

    name: str
    scopes: frozenset[str]

    def needs(self, scope: str) -> None:
        """Raises ServiceError("wrong-scope"); admin may do everything."""
        if not self.scopes & {scope, "admin"}:
            has = ", ".join(sorted(self.scopes)) or "none"
            raise ServiceError("wrong-scope", name=self.name, scope=scope, has=has)


class Limiter:
    """So many changes a minute for each caller."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._times: dict[str, deque[float]] = {}

    def count(self, who: str) -> None:
        """Raises ServiceError("too-many")."""
        if not self._most:
            return
        now = time.monotonic()
        with self._lock:
            times = self._times.setdefault(who, deque())
            while times and now - times[0] > MINUTE:
                times.popleft()
            if len(times) >= self._most:
                seconds = int(MINUTE - (now - times[0])) + 1
                raise ServiceError("too-many", seconds=seconds)
            times.append(now)


def said_key(request: Request) -> str | None:
    """The key as clients send it: a bearer token, or a header of its own; "" for what is neither."""
    said = request.headers.get("authorization")
    if said is None:
        return request.headers.get("x-api-key")
    scheme, _, rest = said.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""


def caller(request: Request, at: Annotated[Desk, Depends(desk)]) -> Caller:
    """Raises ServiceError: "no-key", "too-many"."""
    return identify(request, at, said_key(request))


def identify(request: Request, at: Desk, said: str | None) -> Caller:
    """Whose key was said; raises ServiceError: "no-key", "too-many"."""
    if said is None and at.settings.loopback:
        found = Caller(LOCAL, frozenset(keys.SCOPES))
    else:
        with at.database.reading() as connection:
            key = keys.find(connection, said or "")
        if key is None:
            raise ServiceError("no-key")
        found = Caller(key.name, key.scopes)
    if request.method not in SAFE:
        cast(Limiter, request.app.state.limiter).count(found.name)
    request.state.caller = found.name
    return found


def needs(scope: str) -> Callable[..., Caller]:
    """A dependency: the caller, who has the scope."""

    def checked(
        found: Annotated[Caller, Depends(caller)],
        _bearer: Annotated[object, Depends(SCHEMES[0])],
        _header: Annotated[object, Depends(SCHEMES[1])],
    ) -> Caller:
        found.needs(scope)
        return found

    return checked


Reader = Annotated[Caller, Depends(needs("read"))]
Importer = Annotated[Caller, Depends(needs("import"))]
Approver = Annotated[Caller, Depends(needs("approve"))]
Admin = Annotated[Caller, Depends(needs("admin"))]


def act(request: Request, who: Caller, action: str, why: str | None = None) -> Act:
    """What a caller does, for versions and the audit log."""
    return Act(who.name, action, why, getattr(request.state, "id", None))
