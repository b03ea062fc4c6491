"""Documents that were deleted: their list, and their end after a retention time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, func, select

from importer.storage import tables
from importer.storage.documents import changed

T = tables.configs.c
SHOWN = (T.name, T.model, T.backend, T.version, T.deleted_at)


def page(connection: Connection, limit: int, after: str = "") -> list[dict[str, Any]]:
    """Return deleted documents by name, those behind ``after``."""
    query = select(*SHOWN).where(T.deleted_at.is_not(None), T.name > after).order_by(T.name).limit(limit)
    return [dict(row) for row in connection.execute(query).mappings()]


def count(connection: Connection) -> int:
    """Return how many documents are deleted."""
    return connection.execute(select(func.count()).where(T.deleted_at.is_not(None))).scalar_one()


def purge(connection: Connection, before: str) -> int:
    """Delete documents for good that were deleted before a time, with versions, releases and findings.

    Return how many. Pieces of receipts that no version has any more are left.
    """
    query = select(T.name).where(T.deleted_at.is_not(None), T.deleted_at < before)
    names = [*connection.execute(query).scalars()]
    for name in names:
        for table in (tables.versions, tables.releases, tables.findings, tables.configs):
            connection.execute(delete(table).where(table.c.name == name))
    if names:
        changed(connection)
    return len(names)
