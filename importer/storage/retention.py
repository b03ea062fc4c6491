"""Retention: ended jobs are deleted by age, in small transactions that a kill does not tear.

Open jobs stay whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, select, update

from importer.storage import queue, tables
from importer.storage.database import Database
from importer.storage.jobs import ENDED

BATCH = 200  # jobs with all their events in one transaction
INTERVAL = 3600  # seconds between two runs of all processes together
LAST_RUN = "retention"  # a key of ``marks``
E, J, K = tables.events.c, tables.jobs.c, tables.marks.c


def due(connection: Connection) -> bool:
    """Return whether this process is to run the retention now: one of all that share the database is."""
    now = int(time.time())
    mine = update(tables.marks).where(K.key == LAST_RUN, K.value <= now - INTERVAL).values(value=now)
    return connection.execute(mine).rowcount == 1


def run(database: Database, days: int, ending: Callable[[], bool] = lambda: False) -> int:
    """Delete the jobs that ended so many days ago, 0 none; return how many.

    ``ending`` ends the run between two transactions: the next run continues.
    """
    removed, more = 0, days > 0
    while more and not ending():
        with database.writing() as connection:
            database.alone(connection)
            number, more = _batch(connection, datetime.now(UTC) - timedelta(days=days))
        removed += number
    with database.writing() as connection:
        queue.forget(connection)
    return removed


def _batch(connection: Connection, before: datetime) -> tuple[int, bool]:
    """Delete jobs with their events, and lists with all their jobs.

    Return how many, and whether there may be more.
    """
    old = [J.root == J.id, J.state.in_(ENDED), J.ended_at < before.isoformat(timespec="seconds")]
    roots = connection.execute(select(J.id).where(*old).order_by(J.id).limit(BATCH)).scalars().all()
    # Jobs are locked before their list, as their processes do; one that was tried again meanwhile stays.
    members = select(J.id).where(J.root.in_(roots), J.id != J.root).order_by(J.root, J.place)
    connection.execute(members.with_for_update())
    still = select(J.id).where(J.id.in_(roots), J.state.in_(ENDED)).order_by(J.id)
    chosen = connection.execute(still.with_for_update()).scalars().all()
    idents = select(J.id).where(J.root.in_(chosen))
    connection.execute(delete(tables.steps).where(tables.steps.c.job.in_(idents)))
    connection.execute(delete(tables.events).where(E.root.in_(chosen)))
    rows = connection.execute(delete(tables.jobs).where(J.root.in_(chosen))).rowcount
    return rows, len(chosen) == BATCH
