"""Answers by idempotency key: what was asked twice is done once and answered twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from importer.app.import_ import now
from importer.errors import ServiceError
from importer.gallery.tables import answers

KEPT = timedelta(days=7)


class Again(Exception):
    """Somebody else has answered the same request meanwhile."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it was given."""

    status: int
    headers: Mapping[str, str]
    body: str


def find(connection: Connection, who: str, key: str, asked: str) -> Answer | None:
    """The answer under a key; raises ServiceError("key-reused") where something else was asked."""
    row = (
        connection.execute(select(answers).where(answers.c.who == who, answers.c.key == key))
        .mappings()
        .first()
    )
    if row is None:
        return None
    if row["asked"] != asked:
        raise ServiceError("key-reused", key=key)
    return Answer(row["status"], json.loads(row["headers"]), row["body"])


def keep(connection: Connection, who: str, key: str, asked: str, answer: Answer) -> None:
    """Keep an answer in the transaction that earned it; raises Again where there is one by now."""
    row = {"who": who, "key": key, "asked": asked, "status": answer.status, "body": answer.body}
    try:
        connection.execute(insert(answers).values(**row, headers=json.dumps(dict(answer.headers)), at=now()))
    except IntegrityError:
        raise Again from None


def forget(connection: Connection) -> None:
    """Drop answers that nobody will ask for again."""
    oldest = (datetime.now(UTC) - KEPT).isoformat(timespec="seconds")
    connection.execute(delete(answers).where(answers.c.at < oldest))
