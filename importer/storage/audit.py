"""The audit log: every change, by whom, when, on which request, from which address."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from sqlalchemy import ColumnElement, Connection, func, insert, select

from importer import tracing
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
    connection: Connection,
    context: AuditContext,
    subject: str | None,
    details: Mapping[str, object],
    until: int | None = None,
) -> None:
    """Add an entry, in the transaction of the change itself; ``until``: the last one that it deletes."""
    beside = {"why": context.why, "address": context.address}
    data = dict(details) | {key: value for key, value in beside.items() if value is not None}
    row = {
        "who": context.who, "action": context.action, "subject": subject, "request": context.request,
        "digest": details.get("digest"), "trace": tracing.trace_id(), "until": until,
    }  # fmt: skip
    connection.execute(insert(audit).values(**row, at=now(), details=json.dumps(data, ensure_ascii=False)))


@frozen
class AuditFilter:
    """Which entries a list has; ``subject`` is a document, or what an entry names, such as ``job ID``."""

    who: str | None = None
    action: str | None = None
    subject: str | None = None
    since: str | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions of the rows."""
        pairs = ((audit.c.who, self.who), (audit.c.action, self.action), (audit.c.subject, self.subject))
        found = [column == value for column, value in pairs if value is not None]
        return found if self.since is None else [*found, audit.c.at >= self.since]


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
    trace: str | None
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
                row.request, row.trace, details,
            )  # fmt: skip
        after = rows[-1].id


ALL = AuditFilter()


def total(connection: Connection, chosen: AuditFilter = ALL) -> int:
    """Return how many entries a list has in all."""
    return connection.execute(select(func.count(audit.c.id)).where(*chosen.conditions)).scalar_one()


def page(
    connection: Connection, limit: int, before: int | None = None, chosen: AuditFilter = ALL
) -> list[dict[str, object]]:
    """Return the newest entries, those before an id."""
    query = select(audit).where(*chosen.conditions).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.id < before)
    rows = connection.execute(query).mappings()
    return [{**row, "details": json.loads(row["details"])} for row in rows]
