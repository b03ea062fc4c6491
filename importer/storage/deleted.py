"""Documents that were deleted: their list, and their end after a retention time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, func, select

from importer.storage import tables
from importer.storage.change_counter import changed

T = tables.configs.c
SHOWN = (T.name, T.model, T.backend, T.version, T.deleted_at)


def page(connection: Connection, limit: int, after: str = "") -> list[dict[str, Any]]:
    """Return deleted documents by name, those behind ``after``."""
    query = select(*SHOWN).where(T.deleted_at.is_not(None), T.name > after).order_by(T.name).limit(limit)
    return [dict(row) for row in connection.execute(query).mappings()]


def count(connection: Connection) -> int:
    """Return how many documents are deleted."""
    return connection.execute(select(func.count()).where(T.deleted_at.is_not(None))).scalar_one()


def purge(connection: Connection, before: str, limit: int) -> tuple[int, set[str]]:
    """Delete documents for good that were deleted before a time, with versions, releases and findings.

    Return how many, at most ``limit``, and the hashes of the receipts that they named.
    """
    old = select(T.name).where(T.deleted_at.is_not(None), T.deleted_at < before).order_by(T.name).limit(limit)
    names = [*connection.execute(old).scalars()]
    receipts: set[str] = set()
    for table in (tables.versions, tables.releases):
        hashes = select(table.c.receipt_hash).where(table.c.name.in_(names))
        receipts |= {one for one in connection.execute(hashes).scalars() if one is not None}
    for table in (tables.versions, tables.releases, tables.findings, tables.configs):
        connection.execute(delete(table).where(table.c.name.in_(names)))
    if names:
        changed(connection)
    return len(names), receipts
