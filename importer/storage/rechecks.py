"""The documents of rechecks as rows: those that wait, and what an import of each would change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from importer.config import now
from importer.frozen import frozen
from importer.storage import document_rows, tables
from importer.storage.jobs import Failure

Outcome = Literal["unchanged", "differs", "left-out", "failed", "gone"]
K = tables.rechecks.c
BATCH = 500  # rows in one insertion


@frozen
class Compared:
    """One document of a recheck; ``outcome`` is ``None`` while it waits.

    ``version``  of the working copy that was compared. ``found``  the dry import's JSON; ``error``  why there
    is none.
    """

    job: str
    name: str
    outcome: Outcome | None
    version: int | None
    found: Mapping[str, Any] | None
    error: Failure | None
    at: str | None


COLUMNS = [K[f.name] for f in fields(Compared)]


def select_names(connection: Connection, job: str, names: Iterable[str]) -> int:
    """Record the documents that a recheck is to compare; return how many."""
    rows = [{"job": job, "name": name} for name in dict.fromkeys(names)]
    for at in range(0, len(rows), BATCH):
        connection.execute(insert(tables.rechecks), rows[at : at + BATCH])
    return len(rows)


def waiting(connection: Connection, job: str, limit: int) -> list[str]:
    """Return the first documents of a recheck that were not compared yet, by name."""
    query = select(K.name).where(K.job == job, K.outcome.is_(None)).order_by(K.name).limit(limit)
    return [*connection.execute(query).scalars()]


def record(
    connection: Connection, job: str, name: str, outcome: Outcome, version: int | None = None,
    found: Mapping[str, object] | None = None, error: Failure | None = None,
) -> None:  # fmt: skip
    """Record the outcome of one document, and whether it needs attention for it."""
    at = now()
    row = {
        "outcome": outcome, "version": version, "at": at,
        "found": None if found is None else json.dumps(found, ensure_ascii=False),
        "error": None if error is None else json.dumps(error),
    }  # fmt: skip
    connection.execute(update(tables.rechecks).where(K.job == job, K.name == name).values(row))
    if version is not None and outcome in ("unchanged", "differs"):
        document_rows.checked(connection, name, version, at, differs=outcome == "differs")


def outcomes(connection: Connection, job: str) -> dict[str, int]:
    """Return how many documents of a recheck have which outcome; ``waiting`` have none yet."""
    query = select(K.outcome, func.count()).where(K.job == job).group_by(K.outcome)
    return {row[0] or "waiting": row[1] for row in connection.execute(query)}


def page(
    connection: Connection, job: str, limit: int, after: str = "", outcome: Outcome | None = None
) -> list[Compared]:
    """Return the documents of a recheck by name, those behind ``after``."""
    query = select(*COLUMNS).where(K.job == job, K.name > after).order_by(K.name).limit(limit)
    query = query if outcome is None else query.where(K.outcome == outcome)
    return [_read(row) for row in connection.execute(query).mappings()]


def last(connection: Connection, name: str) -> Compared | None:
    """Return what the last recheck found, while an import would change the document; else ``None``."""
    differing = tables.configs.c.attention.contains(f" {document_rows.DIFFERS} ")
    present = select(tables.configs.c.name).where(tables.configs.c.name == name, differing).exists()
    query = select(*COLUMNS).where(K.name == name, K.outcome == "differs", present)
    row = connection.execute(query.order_by(K.at.desc(), K.job.desc()).limit(1)).mappings().first()
    return None if row is None else _read(row)


def _read(row: RowMapping) -> Compared:
    return Compared(**{**row, **{part: row[part] and json.loads(row[part]) for part in ("found", "error")}})
