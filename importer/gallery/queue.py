"""Jobs that wait: for a queue, for a device that can run them, or for nobody any more."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlalchemy import Connection, select, update

from importer.gallery import jobs, tables
from importer.gallery.jobs import COLUMNS, OPEN, Job

J = tables.jobs.c
AT_A_TIME = 100
Can = Callable[[str | None, int | None], bool]


def waiting(connection: Connection) -> list[Job]:
    """Imports that are in no queue yet, the oldest first."""
    open_ones = (J.state == "queued", J.enqueued == 0, J.kind == "import")
    rows = connection.execute(select(*COLUMNS).where(*open_ones).order_by(J.id).limit(AT_A_TIME))
    return [jobs.read(row) for row in rows.mappings()]


def enqueued(connection: Connection, found: Job) -> None:
    """Note that a job is in its queue."""
    mine = update(tables.jobs).where(J.id == found.id, J.attempt == found.attempt)
    connection.execute(mine.values(enqueued=1))


def begun(connection: Connection) -> list[Job]:
    """Jobs that are under way, or in a queue, the oldest first."""
    open_ones = (J.state.in_(OPEN), J.enqueued == 1, J.kind != "imports")
    rows = connection.execute(select(*COLUMNS).where(*open_ones).order_by(J.id).limit(AT_A_TIME))
    return [jobs.read(row) for row in rows.mappings()]


def claim(connection: Connection, device: str, can: Can) -> Job | None:
    """The validation that a device is to run next, if it has none: the oldest that it can."""
    mine = select(*COLUMNS, J.enqueued).where(J.device == device, J.state.in_(OPEN)).order_by(J.id).limit(1)
    row = connection.execute(mine).mappings().first()
    if row is not None:  # claimed by a process that died before it was in the queue
        return None if row["enqueued"] else jobs.get(connection, row["id"])
    waiting = (J.kind == "validation", J.state == "queued", J.device.is_(None))
    for found in connection.execute(select(J.id, J.engine, J.memory).where(*waiting).order_by(J.id)):
        if can(found.engine, found.memory):
            taken = update(tables.jobs).where(J.id == found.id, *waiting).values(device=device)
            if connection.execute(taken).rowcount:
                return jobs.get(connection, found.id)
    return None


def release(connection: Connection, devices: Collection[str]) -> list[Job]:
    """Give back the validations of all other devices, which are gone; as they were."""
    theirs = (J.device.is_not(None), J.device.not_in(devices), J.state.in_(OPEN))
    found = [jobs.read(row) for row in connection.execute(select(*COLUMNS).where(*theirs)).mappings()]
    return [job for job in found if anew(connection, job, f"{job.device} is gone")]


def anew(connection: Connection, job: Job, says: str) -> bool:
    """Let a job begin from its start as another attempt; false where it has ended, or begun so already."""
    mine = update(tables.jobs).where(J.id == job.id, J.attempt == job.attempt, J.state.in_(OPEN))
    again = {"device": None, "enqueued": 0, "state": "queued", "step": None, "says": None}
    if connection.execute(mine.values(**again, attempt=job.attempt + 1)).rowcount == 0:
        return False
    jobs.note(connection, job, "queued", {"attempt": job.attempt + 1, "says": says})
    return True
