"""Responses by idempotency key: a request that is sent twice is executed once and answered twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from importer.config import now
from importer.errors import ServiceError
from importer.frozen import frozen
from importer.storage.tables import answers

RETENTION = timedelta(days=7)


class AlreadyStored(Exception):
    """Another process has answered the same request meanwhile."""


@frozen
class StoredResponse:
    """A response as it was sent."""

    status: int
    headers: Mapping[str, str]
    body: str


def load(connection: Connection, who: str, key: str, fingerprint: str) -> StoredResponse | None:
    """Return the response under a key, if there is one.

    Raises ServiceError("key-reused") where the key belongs to a request with another fingerprint.
    """
    row = (
        connection.execute(select(answers).where(answers.c.who == who, answers.c.key == key))
        .mappings()
        .first()
    )
    if row is None:
        return None
    if row["asked"] != fingerprint:
        raise ServiceError("key-reused", key=key)
    return StoredResponse(row["status"], json.loads(row["headers"]), row["body"])


def save(connection: Connection, who: str, key: str, fingerprint: str, response: StoredResponse) -> None:
    """Store a response in the transaction of the change itself; raises AlreadyStored."""
    row = {"who": who, "key": key, "asked": fingerprint, "status": response.status, "body": response.body}
    headers = json.dumps(dict(response.headers))
    try:
        connection.execute(insert(answers).values(**row, headers=headers, at=now()))
    except IntegrityError:
        raise AlreadyStored from None


def delete_expired(connection: Connection) -> None:
    """Delete responses that are older than the retention."""
    oldest = (datetime.now(UTC) - RETENTION).isoformat(timespec="seconds")
    connection.execute(delete(answers).where(answers.c.at < oldest))
