"""Runs on pools whose jobs have ended: rows beside the results of steps, until nothing is left of them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, delete, insert, select

from importer.storage import tables

J, S = tables.jobs.c, tables.steps.c
PREFIX = "pool:"  # of the device of a job on a pool
NAMED = "weights"  # the step that names the run
LEFT = "left "  # and an attempt: the name of such a row


@dataclass(frozen=True, slots=True)
class Remains:
    """A run that has to be ended and removed; ``held`` is the process that followed it last."""

    job: str
    name: str
    remote: str
    on: str
    held: str | None
    since: float


def device(pool: str | None) -> str | None:
    """Return the device of a job on a pool."""
    return None if pool is None else f"{PREFIX}{pool}"


def on_pool(device: str | None) -> bool:
    """Return whether a job with this device runs on a pool."""
    return device is not None and device.startswith(PREFIX)


def kept_device() -> ColumnElement[str | None]:
    """Return a job's device for another attempt: a pool stays, a device of a process does not."""
    return case((J.device.startswith(PREFIX, autoescape=True), J.device), else_=None)


def leave(connection: Connection, job: str, attempt: int, held: str | None) -> None:
    """Put what a job on a pool named into a row of its own; nothing was submitted before it was named."""
    query = select(S.result).where(S.job == job, S.name == NAMED)
    named = connection.execute(query).scalar()
    connection.execute(delete(tables.steps).where(S.job == job, S.name.not_like(f"{LEFT}%")))
    if named is not None:
        row = json.dumps({**json.loads(named), "held": held, "since": time.time()})
        connection.execute(insert(tables.steps).values(job=job, name=f"{LEFT}{attempt}", result=row))


def all_remains(connection: Connection) -> list[Remains]:
    """Return every run that is left."""
    rows = connection.execute(select(S.job, S.name, S.result).where(S.name.like(f"{LEFT}%")))
    return [_read(row.job, row.name, json.loads(row.result)) for row in rows]


def forget(connection: Connection, one: Remains) -> None:
    """Delete the row of a run of which nothing is left."""
    connection.execute(delete(tables.steps).where(S.job == one.job, S.name == one.name))


def _read(job: str, name: str, data: dict[str, object]) -> Remains:
    held, since = data.get("held"), data.get("since")
    return Remains(
        job, name, str(data["remote"]), str(data["on"]), None if held is None else str(held),
        since if isinstance(since, float) else 0.0,
    )  # fmt: skip
