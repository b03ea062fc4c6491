"""Idempotency keys: a repeated POST is executed once, and gets the same response."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from importer.service.desk import Desk, desk, json_text
from importer.service.domain.grants import Caller
from importer.service.security.auth import caller
from importer.storage import idempotency_store
from importer.storage.idempotency_store import AlreadyStored, StoredResponse

REPLAYED = "Idempotency-Replayed"
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


class Idempotency:
    """The response to one request, made once."""

    def __init__(self, at: Desk, who: str, key: str | None, fingerprint: str) -> None:
        self._desk, self._who, self._key, self._fingerprint = at, who, key, fingerprint

    def replay(self) -> Response | None:
        """Return the stored response of this key; ``None`` without one. Raises ServiceError("key-reused")."""
        stored = self._stored()
        if stored is None:
            return None
        headers = {**stored.headers, REPLAYED: "true"}
        return Response(stored.body, stored.status, headers, "application/json")

    def stored_body(self) -> dict[str, object] | None:
        """Return the body of the stored response; ``None`` without one."""
        stored = self._stored()
        return None if stored is None else dict(json.loads(stored.body))

    def _stored(self) -> StoredResponse | None:
        if self._key is None:
            return None
        with self._desk.database.reading() as connection:
            return idempotency_store.load(connection, self._who, self._key, self._fingerprint)

    def answer(
        self, connection: Connection, data: object, status: int, headers: Mapping[str, str]
    ) -> Response:
        """Return a response, stored in the transaction of the change itself; raises AlreadyStored."""
        body = json_text(data)
        if self._key is not None:
            stored = StoredResponse(status, headers, body)
            idempotency_store.save(connection, self._who, self._key, self._fingerprint, stored)
        return Response(body, status, dict(headers), "application/json")


async def asked(
    request: Request,
    at: Annotated[Desk, Depends(desk)],
    who: Annotated[Caller, Depends(caller)],
    key: Key = None,
) -> Idempotency:
    """Return the idempotency of this request under its key."""
    body = await request.body() if key is not None else b""
    fingerprint = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode() + body)
    one = Idempotency(at, who.name, key, fingerprint.hexdigest())
    request.state.once = one
    return one


Asked = Annotated[Idempotency, Depends(asked)]


def once(one: Asked) -> Idempotency:
    """Return the idempotency of a request that is new; raises AlreadyStored for a repeated one."""
    if one.replay() is not None:
        raise AlreadyStored
    return one


AskedOnce = Annotated[Idempotency, Depends(once)]
