"""Figures for the operator: the queue, the processes, the size of the database, what the retention does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import Connection, Table, func, select, text

from importer.storage import processes, retention, tables
from importer.storage.database import Database
from importer.storage.retention import Keep, Limits

J = tables.jobs.c
COUNTED = ("configs", "versions", "receipts", "jobs", "events", "audit", "rechecks")
# Of each kind that is deleted by age: its table, and the column of the age.
AGED: Mapping[str, tuple[Table, str]] = {
    "jobs": (tables.jobs, "ended_at"), "audit": (tables.audit, "at"),
    "documents": (tables.configs, "deleted_at"),
}  # fmt: skip


def workers(connection: Connection) -> list[dict[str, object]]:
    """Return each process that runs jobs, with its last heartbeat and its jobs."""
    query = select(J.executor, J.id, J.kind, J.config, J.step, J.started_at)
    query = query.where(J.state == "running", J.executor.is_not(None)).order_by(J.id)
    of: dict[str, list[dict[str, object]]] = {}
    for row in connection.execute(query).mappings():
        of.setdefault(row["executor"], []).append({k: v for k, v in row.items() if k != "executor"})
    return [
        {
            "id": one.id, "host": one.host, "pid": one.pid, "started_at": one.started_at,
            "seen_at": datetime.fromtimestamp(one.seen, UTC).isoformat(timespec="seconds"),
            "alive": not processes.overdue(one), "device": one.device, "engines": [*one.engines],
            "memory": one.memory, "version": one.version, "jobs": of.get(one.id, []),
        }
        for one in processes.all_executors(connection)
    ]  # fmt: skip


def queue(connection: Connection) -> list[dict[str, object]]:
    """Return by kind and caller how many jobs wait and run, and since when the oldest waits."""
    oldest = func.min(J.created_at)
    query = select(J.kind, J.by, J.state, func.count(), oldest).where(
        J.state.in_(("queued", "running")), J.kind != "imports"
    )
    found: dict[tuple[str, str], dict[str, object]] = {}
    for kind, by, state, number, first in connection.execute(query.group_by(J.kind, J.by, J.state)):
        row = found.setdefault(
            (kind, by), {"kind": kind, "by": by, "queued": 0, "running": 0, "oldest_at": None}
        )
        row[state] = number
        if state == "queued":
            row["oldest_at"] = first
    return [found[key] for key in sorted(found)]


def kept(connection: Connection, limits: Limits) -> list[dict[str, object]]:
    """Return by kind of row what is kept, how many are due now by their age, and how many went so far."""
    gone = retention.removed(connection)
    rows: list[dict[str, object]] = []
    for kind in retention.WORK:
        keep: Keep = getattr(limits, kind)
        rows.append({
            "kind": kind, "days": keep.days or None, "number": keep.number or None,
            "due": _due(connection, kind, keep), "removed": gone.get(kind, 0),
        })  # fmt: skip
    return rows


def _due(connection: Connection, kind: str, keep: Keep) -> int | None:
    if kind not in AGED or not keep.days:
        return None
    table, column = AGED[kind]
    return connection.execute(
        select(func.count()).select_from(table).where(table.c[column] < keep.oldest)
    ).scalar_one()


def size(database: Database, connection: Connection) -> dict[str, object]:
    """Return the kind of the database, its bytes, and the rows of its larger tables."""
    rows = {
        name: connection.execute(select(func.count()).select_from(tables.METADATA.tables[name])).scalar_one()
        for name in COUNTED
    }
    return {
        "kind": "sqlite" if database.sqlite else "postgresql",
        "bytes": _bytes(database, connection),
        "rows": rows,
    }


def _bytes(database: Database, connection: Connection) -> int:
    if not database.sqlite:
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    path, found = str(database.url.database), 0
    for name in (path, f"{path}-wal"):
        try:
            found += os.stat(name).st_size  # noqa: PTH116 - a name with an ending of SQLite's
        except OSError:
            continue
    return found
