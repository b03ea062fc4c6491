"""The documents of rechecks as rows: those that wait, and what an import of each would change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)

from importer.config import now
from importer.frozen import frozen
from importer.storage import document_rows, jobs, tables
from importer.storage.jobs import Failure, Job

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


def ask(connection: Connection, names: Sequence[str], request: Mapping[str, object], by: str) -> Job:
    """Queue a recheck of documents; what it compares is chosen now."""
    job = jobs.create(connection, "recheck", {**request, "documents": len(names)}, by)
    rows = [{"job": job.id, "name": name} for name in names]
    for at in range(0, len(rows), BATCH):
        connection.execute(insert(tables.rechecks), rows[at : at + BATCH])
    return job


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


def has(connection: Connection, job: str, name: str) -> bool:
    """Return whether a document is of a recheck."""
    query = select(K.name).where(K.job == job, K.name == name)
    return connection.execute(query).first() is not None


def shown() -> ColumnElement[bool]:
    """Return the condition of the rows that documents show: the last difference, while a document has one."""
    marked, later = tables.configs.c, tables.rechecks.alias()
    differing = marked.attention.contains(f" {document_rows.DIFFERS} ")
    newer = (
        later.c.name == K.name,
        later.c.outcome == K.outcome,
        tuple_(later.c.at, later.c.job) > tuple_(K.at, K.job),
    )
    return and_(
        K.outcome == "differs",
        select(marked.name).where(marked.name == K.name, differing).exists(),
        ~select(later.c.name).where(*newer).exists(),
    )


def last(connection: Connection, name: str) -> Compared | None:
    """Return what the last recheck found, while an import would change the document; else ``None``."""
    row = connection.execute(select(*COLUMNS).where(K.name == name, shown())).mappings().first()
    return None if row is None else _read(row)


def forget(connection: Connection) -> None:
    """Delete the rows of jobs that are deleted, but those that documents show."""
    unowned = K.job.not_in(select(tables.jobs.c.id))
    connection.execute(delete(tables.rechecks).where(unowned, ~shown()))


def _read(row: RowMapping) -> Compared:
    return Compared(**{**row, **{part: row[part] and json.loads(row[part]) for part in ("found", "error")}})
