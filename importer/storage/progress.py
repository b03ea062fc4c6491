"""The progress of jobs: the steps of one, how long they took in former jobs, and all jobs in figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from sqlalchemy import Connection, func, select

from importer.storage import tables
from importer.storage.jobs import OPEN, Job

J, E = tables.jobs.c, tables.events.c
FORMER = 30  # jobs that a median is of
RECENTLY = timedelta(hours=24)  # how long a failure is shown
SHOWN = 5  # jobs that run, by name


@dataclass(frozen=True, slots=True)
class BegunStep:
    """A step that has begun, and its seconds; ``None`` while it runs."""

    name: str
    at: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class FormerSeconds:
    """The median seconds of a step, and of how many jobs."""

    seconds: float
    jobs: int


def begun(connection: Connection, job: Job) -> list[BegunStep]:
    """Return the steps of a job's present attempt that have begun, in their order."""
    return _steps(_events(connection, [job.id], [job.root]).get(job.id, ()), job.attempt, job.ended_at)


def figures(connection: Connection, job: Job) -> dict[str, Any]:
    """Return the newest figures of progress of the present attempt; empty without any."""
    query = select(E.data).where(E.root == job.root, E.job == job.id, E.type == "progress")
    found = connection.execute(query.order_by(E.number.desc()).limit(1)).scalar()
    data: dict[str, Any] = {} if found is None else json.loads(found)
    return data if data.get("attempt") == job.attempt else {}


def former(connection: Connection, job: Job) -> dict[str, FormerSeconds]:
    """Return by step how long it took in the newest jobs of the kind that succeeded, on the same engine."""
    same = [J.kind == job.kind, J.state == "succeeded", J.id != job.id]
    if job.engine is not None:
        same.append(J.engine == job.engine)
    query = select(J.id, J.root, J.attempt, J.ended_at).where(*same).order_by(J.id.desc()).limit(FORMER)
    rows = connection.execute(query).all()
    found = _events(connection, [row.id for row in rows], [row.root for row in rows])
    spent: dict[str, list[float]] = {}
    for row in rows:
        for step in _steps(found.get(row.id, ()), row.attempt, row.ended_at):
            if step.seconds is not None:
                spent.setdefault(step.name, []).append(step.seconds)
    return {name: FormerSeconds(median(seconds), len(seconds)) for name, seconds in spent.items()}


def summary(connection: Connection) -> dict[str, Any]:
    """Return how many jobs wait, run, and failed of late, and those that run."""
    open_jobs = select(J.state, func.count()).where(J.state.in_(OPEN), J.kind != "imports").group_by(J.state)
    counts = {row[0]: row[1] for row in connection.execute(open_jobs)}
    since = (datetime.now(UTC) - RECENTLY).isoformat(timespec="seconds")
    failed = select(func.count()).where(J.state == "failed", J.kind != "imports", J.ended_at >= since)
    members = (J.id, J.kind, J.config, J.step, J.says, J.started_at)
    running = select(*members).where(J.state == "running", J.kind != "imports").order_by(J.id).limit(SHOWN)
    return {
        "queued": counts.get("queued", 0), "running": counts.get("running", 0),
        "failed": connection.execute(failed).scalar_one(),
        "jobs": [
            {("message" if key == "says" else key): value for key, value in row.items()}
            for row in connection.execute(running).mappings()
        ],
    }  # fmt: skip


def _events(
    connection: Connection, idents: Sequence[str], roots: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    query = select(E.job, E.at, E.data).where(E.root.in_({*roots}), E.job.in_(idents), E.type == "step")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in connection.execute(query.order_by(E.root, E.number)):
        found.setdefault(row.job, []).append({**json.loads(row.data), "at": row.at})
    return found


def _steps(events: Sequence[Mapping[str, Any]], attempt: int, ended: str | None) -> list[BegunStep]:
    """Return the steps of an attempt; a step that another process began again counts from then."""
    own = {one["step"]: one for one in events if one.get("attempt") == attempt}
    times = [one["at"] for one in own.values()]
    ends = [*times[1:], ended][: len(own)]
    return [
        BegunStep(one["step"], one["at"], None if end is None else between(one["at"], end))
        for one, end in zip(own.values(), ends, strict=True)
    ]


def between(begin: str, end: str | None = None) -> float:
    """Return the seconds from one time to another, or until now."""
    last = datetime.now(UTC) if end is None else datetime.fromisoformat(end)
    return max(0.0, (last - datetime.fromisoformat(begin)).total_seconds())
