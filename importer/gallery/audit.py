"""The audit log: every change, by whom, when, on which request, from which address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select

from importer.app.import_ import now
from importer.gallery.act import Act
from importer.gallery.tables import audit


def record(connection: Connection, act: Act, subject: str | None, details: Mapping[str, Any]) -> None:
    """Note what is done, in the transaction that does it."""
    beside = {"why": act.why, "address": act.address}
    said = dict(details) | {key: value for key, value in beside.items() if value is not None}
    row = {"at": now(), "who": act.who, "action": act.action, "subject": subject, "request": act.request}
    connection.execute(insert(audit).values(**row, details=json.dumps(said, ensure_ascii=False)))


def page(connection: Connection, limit: int, before: int | None = None) -> list[dict[str, Any]]:
    """The newest entries, those before an id."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.id < before)
    rows = connection.execute(query).mappings()
    return [{**row, "details": json.loads(row["details"])} for row in rows]
