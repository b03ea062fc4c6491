"""Schedules as rows: when work of all processes together is due, begun by one of them."""

from __future__ import annotations

import random
import time

from sqlalchemy import Connection, insert, select, update

from importer.config import now
from importer.storage.tables import schedules

S = schedules.c
JITTER = 0.1  # of the time between two runs
RANDOM = random.SystemRandom()


def due(connection: Connection, name: str, every: int) -> bool:
    """Return whether the work is due, or the schedule has to be written; locks nothing."""
    row = connection.execute(select(S.due, S.every).where(S.name == name)).first()
    return row is None or row.every != every or row.due <= time.time()


def take(connection: Connection, name: str, every: int) -> bool:
    """Take the work that is due, and set its next time; one of many processes gets true.

    A new schedule, or one with another ``every`` in seconds, is due after that time and not at once. The
    transaction that takes it also begins the work, so that a killed process has done both or neither.
    """
    here, seconds = S.name == name, time.time()
    row = connection.execute(select(S.due, S.every).where(here).with_for_update()).first()
    later = seconds + every * (1 + RANDOM.uniform(-JITTER, JITTER))
    if row is None:
        connection.execute(insert(schedules).values(name=name, every=every, due=later))
        return False
    if row.every != every:
        connection.execute(update(schedules).where(here).values(every=every, due=min(row.due, later)))
        return False
    if row.due > seconds:
        return False
    mine = update(schedules).where(here, S.due == row.due).values(due=later)
    return connection.execute(mine).rowcount > 0


def began(connection: Connection, name: str, job: str) -> None:
    """Record the job that a schedule began."""
    connection.execute(update(schedules).where(S.name == name).values(job=job, at=now()))


def last(connection: Connection, name: str) -> dict[str, object] | None:
    """Return a schedule: its job, when that was begun, and when the next one is due."""
    row = connection.execute(select(schedules).where(S.name == name)).mappings().first()
    return None if row is None else dict(row)
