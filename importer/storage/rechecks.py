"""What an import of a document would change, as its last recheck found it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from importer.config import now
from importer.frozen import frozen
from importer.storage import document_rows, tables

K, C = tables.rechecks.c, tables.configs.c


@frozen
class Compared:
    """A recheck that found a difference: its job, the ``version`` of the working copy that it compared, and
    the JSON of the dry import.
    """

    job: str
    version: int
    found: Mapping[str, Any]
    at: str


def record(
    connection: Connection, job: str, name: str, version: int, found: Mapping[str, object] | None
) -> None:
    """Record what an import of a version would change, ``None`` for nothing, unless there is a later version.

    The caller holds the database's lock.
    """
    at = now()
    if not document_rows.checked(connection, name, version, at, differs=found is not None):
        return
    connection.execute(delete(tables.rechecks).where(K.name == name))
    if found is not None:
        row = {"job": job, "version": version, "at": at, "found": json.dumps(found, ensure_ascii=False)}
        connection.execute(insert(tables.rechecks).values(name=name, **row))


def last(connection: Connection, name: str) -> Compared | None:
    """Return what the last recheck found, while an import would change the document; else ``None``."""
    marked = C.attention.contains(f" {document_rows.DIFFERS} ")
    query = select(*(K[f.name] for f in fields(Compared))).join(tables.configs, C.name == K.name)
    row = connection.execute(query.where(K.name == name, marked)).mappings().first()
    return None if row is None else Compared(**{**row, "found": json.loads(row["found"])})
