"""Headers of requests: ETags of documents, and idempotency keys, which execute a repeated POST once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from sqlalchemy import Connection

from importer.errors import ServiceError
from importer.service.desk import Desk, desk, json_text
from importer.service.domain.grants import Caller
from importer.service.security import caller
from importer.storage import idempotency_store
from importer.storage.idempotency_store import AlreadyStored, StoredResponse

MOST = 2**31 - 1  # the largest number that a version can have in either database
TAG = re.compile(r'"(0|[1-9][0-9]{0,8})"')
Line = Annotated[str | None, Header(alias="If-Match", max_length=1000, description='the ETag, such as "3"')]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", max_length=1000)]


async def if_match(request: Request, line: Line = None) -> str | None:
    """Return the header with all of its lines, which are one list."""
    return None if line is None else ", ".join(request.headers.getlist("if-match"))


IfMatch = Annotated[str | None, Depends(if_match)]


def etag(version: int) -> str:
    """Return a version's ETag."""
    return f'"{version}"'


def etag_numbers(header: str | None) -> list[int] | None:
    """Return the versions that If-Match names; ``None`` where it is absent, or ``*``.

    A weak tag or one of another form matches nothing.
    """
    if header is None or header.strip() == "*":
        return None
    return [int(match[1]) for tag in header.split(",") if (match := TAG.fullmatch(tag.strip()))]


def needed_versions(header: str | None, name: str) -> list[int] | None:
    """Return the versions that If-Match names; raises ServiceError("precondition-required") without one."""
    if header is None:
        raise ServiceError("precondition-required", name=name)
    return etag_numbers(header)


def seen_versions(header: str | None, digest: str | None, name: str) -> list[int] | None:
    """Return the version that If-Match names; ``None`` where the digest alone names what was seen.

    Raises ServiceError("digest-required") without either, and for any other header than one strong tag: of
    several versions, or of any, nobody has seen the one that is there.
    """
    if header is None and digest is not None:
        return None
    if (match := TAG.fullmatch((header or "").strip())) is None:
        raise ServiceError("digest-required", name=name)
    return [int(match[1])]


def same_etag(header: str | None, tag: str) -> bool:
    """Return whether If-None-Match names the tag."""
    if header is None:
        return False
    return header.strip() == "*" or tag in {t.strip().removeprefix("W/") for t in header.split(",")}


REPLAYED = "Idempotency-Replayed"
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


class Idempotency:
    """The response to one request, made once."""

    def __init__(self, at: Desk, who: str, key: str | None, fingerprint: str) -> None:
        self._desk, self._who, self._key, self._fingerprint = at, who, key, fingerprint

    def replay(self) -> Response | None:
        """Return the stored response of this key; ``None`` without one. Raises ServiceError("key-reused")."""
        if self._key is None:
            return None
        with self._desk.database.reading() as connection:
            stored = idempotency_store.load(connection, self._who, self._key, self._fingerprint)
        if stored is None:
            return None
        return Response(stored.body, stored.status, {**stored.headers, REPLAYED: "true"}, "application/json")

    def answer(
        self, connection: Connection, data: object, status: int, headers: Mapping[str, str]
    ) -> Response:
        """Return a response, stored in the transaction of the change itself; raises AlreadyStored."""
        body = json_text(data)
        if self._key is not None:
            stored = StoredResponse(status, headers, body)
            idempotency_store.save(connection, self._who, self._key, self._fingerprint, stored)
        return Response(body, status, dict(headers), "application/json")


async def once(
    request: Request,
    at: Annotated[Desk, Depends(desk)],
    who: Annotated[Caller, Depends(caller)],
    key: Key = None,
) -> Idempotency:
    """Return the idempotency of a request under its key, if it has one; raises AlreadyStored for a repeated
    one.
    """
    body = await request.body() if key is not None else b""
    fingerprint = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode() + body)
    one = request.state.once = Idempotency(at, who.name, key, fingerprint.hexdigest())
    if key is not None and await run_in_threadpool(one.replay) is not None:
        raise AlreadyStored
    return one


AskedOnce = Annotated[Idempotency, Depends(once)]
