"""Idempotency keys: a POST that is sent twice is done once, and answered alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from importer.gallery import answers
from importer.gallery.answers import Answer
from importer.service.api.dependencies import Desk, desk, json_text
from importer.service.security.auth import caller
from importer.service.security.grants import Caller

REPLAYED = "Idempotency-Replayed"
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


class Once:
    """The answer to one request, given once."""

    def __init__(self, at: Desk, who: str, key: str | None, asked: str) -> None:
        self._desk, self._who, self._key, self._asked = at, who, key, asked

    def said(self) -> Response | None:
        """The answer that was given before; raises ServiceError("key-reused")."""
        found = self._found()
        if found is None:
            return None
        headers = {**found.headers, REPLAYED: "true"}
        return Response(found.body, found.status, headers, "application/json")

    def kept(self) -> dict[str, Any] | None:
        """What was kept of that answer."""
        found = self._found()
        return None if found is None else dict(json.loads(found.body))

    def _found(self) -> Answer | None:
        if self._key is None:
            return None
        with self._desk.database.reading() as connection:
            return answers.find(connection, self._who, self._key, self._asked)

    def answer(
        self, connection: Connection, data: object, status: int, headers: Mapping[str, str]
    ) -> Response:
        """An answer that is kept in the transaction that earned it; raises Again."""
        body = json_text(data)
        if self._key is not None:
            kept = Answer(status, headers, body)
            answers.keep(connection, self._who, self._key, self._asked, kept)
        return Response(body, status, dict(headers), "application/json")


async def once(
    request: Request,
    at: Annotated[Desk, Depends(desk)],
    who: Annotated[Caller, Depends(caller)],
    key: Key = None,
) -> Once:
    """What this request was asked for under its key."""
    body = await request.body() if key is not None else b""
    asked = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode() + body)
    found = Once(at, who.name, key, asked.hexdigest())
    request.state.once = found
    return found


AskedOnce = Annotated[Once, Depends(once)]
