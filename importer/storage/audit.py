"""The audit log: every change, by whom, when, on which request, from which address."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, insert, select

from importer.config import now
from importer.frozen import frozen
from importer.storage.tables import audit

PAGE = 1000  # entries of one query


@frozen
class AuditContext:
    """Who changes something, the name of the action, why, the request that it belongs to, and from where."""

    who: str
    action: str
    why: str | None = None
    request: str | None = None
    address: str | None = None


def record(
    connection: Connection, context: AuditContext, subject: str | None, details: Mapping[str, object]
) -> None:
    """Add an entry, in the transaction of the change itself."""
    beside = {"why": context.why, "address": context.address}
    data = dict(details) | {key: value for key, value in beside.items() if value is not None}
    row = {
        "who": context.who, "action": context.action, "subject": subject, "request": context.request,
        "digest": details.get("digest"),
    }  # fmt: skip
    connection.execute(insert(audit).values(**row, at=now(), details=json.dumps(data, ensure_ascii=False)))


@frozen
class AuditEvent:
    """One entry as it is exported; ``digest`` is that of the document that the action left."""

    id: int
    at: str
    actor: str
    action: str
    target: str | None
    digest: str | None
    request: str | None
    details: Mapping[str, object]


def exported(connection: Connection, after: int = 0) -> Iterator[AuditEvent]:
    """Yield the entries behind an id, the oldest first."""
    while rows := connection.execute(
        select(audit).where(audit.c.id > after).order_by(audit.c.id).limit(PAGE)
    ).all():
        for row in rows:
            details = json.loads(row.details)
            yield AuditEvent(
                row.id, row.at, row.who, row.action, row.subject, row.digest or details.get("digest"),
                row.request, details,
            )  # fmt: skip
        after = rows[-1].id
