"""Jobs and their events as rows: what was asked for, how far it is, what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import Connection, func, insert, select, update

from importer.app.import_ import now
from importer.errors import ServiceError
from importer.gallery import tables
from importer.gallery.ids import fresh

Kind = Literal["import", "imports", "validation"]
State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
OPEN = ("queued", "running")
ENDED = ("succeeded", "failed", "cancelled")
J, E = tables.jobs.c, tables.events.c


@dataclass(frozen=True, slots=True)
class Job:
    """One job; ``root`` is the list it belongs to, or itself."""

    id: str
    kind: Kind
    root: str
    place: int
    state: State
    step: str | None
    says: str | None
    request: Mapping[str, Any]
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    by: str
    config: str | None
    engine: str | None
    memory: int | None
    device: str | None
    attempt: int
    events: int
    created_at: str
    started_at: str | None
    ended_at: str | None

    @property
    def workflow(self) -> str:
        """The id of the durable workflow that does it; each attempt is one of its own."""
        return f"{self.id}.{self.attempt}"


COLUMNS = [J[f.name] for f in fields(Job)]


def create(
    connection: Connection,
    kind: Kind,
    request: Mapping[str, Any],
    by: str,
    *,
    root: Job | None = None,
    place: int = 0,
    config: str | None = None,
    engine: str | None = None,
    memory: int | None = None,
    says: str | None = None,
) -> Job:
    """A new job that waits, alone or as one of the list ``root``; ``says`` is what it waits for."""
    ident = fresh()
    row = {
        "id": ident, "kind": kind, "root": root.id if root else ident, "place": place, "state": "queued",
        "request": json.dumps(request), "says": says, "by": by, "config": config, "engine": engine,
        "memory": memory, "attempt": 1, "events": 0, "enqueued": int(kind == "imports"), "created_at": now(),
    }  # fmt: skip
    connection.execute(insert(tables.jobs).values(**row))
    job = get(connection, ident)
    if root is None:
        note(connection, job, "queued", {} if says is None else {"says": says})
    return job


def get(connection: Connection, ident: str) -> Job:
    """Raises ServiceError("no-such-job")."""
    row = connection.execute(select(*COLUMNS).where(J.id == ident)).mappings().first()
    if row is None:
        raise ServiceError("no-such-job", job=ident)
    return read(row)


def page(
    connection: Connection, limit: int, *, before: str | None = None, states: Sequence[str] = (),
    kind: str | None = None, config: str | None = None, root: str | None = None,
) -> list[Job]:  # fmt: skip
    """The newest jobs, those before an id, of lists only where a document is named; of ``root`` its own ones
    in their order.
    """
    query = select(*COLUMNS)
    if root is None:
        query = query.where(*([J.root == J.id] if config is None else [])).order_by(J.id.desc())
        query = query if before is None else query.where(J.id < before)
    else:
        query = query.where(J.root == root, J.id != root).order_by(J.place)
        query = query if before is None else query.where(J.place > int(before))
    query = query.where(J.state.in_(states)) if states else query
    query = query if kind is None else query.where(J.kind == kind)
    query = query if config is None else query.where(J.config == config)
    return [read(row) for row in connection.execute(query.limit(limit)).mappings()]


def newest(connection: Connection, kind: Kind, limit: int) -> list[Job]:
    """The newest jobs of a kind, those of lists, too."""
    query = select(*COLUMNS).where(J.kind == kind).order_by(J.id.desc()).limit(limit)
    return [read(row) for row in connection.execute(query).mappings()]


def counts(connection: Connection, root: str) -> dict[str, int]:
    """How many jobs of a list are in which state."""
    query = select(J.state, func.count()).where(J.root == root, J.id != root).group_by(J.state)
    return {row[0]: row[1] for row in connection.execute(query)}


def begin(connection: Connection, job: Job, step: str) -> bool:
    """Let a job go on with a step; false where it was cancelled or is of another attempt by now."""
    mine = update(tables.jobs).where(J.id == job.id, J.attempt == job.attempt, J.state.in_(OPEN))
    started = func.coalesce(J.started_at, now())
    if (
        connection.execute(mine.values(state="running", step=step, says=None, started_at=started)).rowcount
        == 0
    ):
        return False
    note(connection, job, "step", {"step": step})
    _root_begins(connection, job)
    return True


def say(connection: Connection, job: Job, says: str) -> None:
    """Progress within a step."""
    mine = update(tables.jobs).where(J.id == job.id, J.attempt == job.attempt, J.state == "running")
    if connection.execute(mine.values(says=says)).rowcount:
        note(connection, job, "progress", {"says": says})


def end(
    connection: Connection,
    job: Job,
    state: State,
    *,
    result: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
    config: str | None = None,
) -> bool:
    """End a job once; false where it has ended before, or is of another attempt by now."""
    row = {
        "state": state, "ended_at": now(), "says": None,
        "result": None if result is None else json.dumps(result),
        "error": None if error is None else json.dumps(error),
    }  # fmt: skip
    if config is not None:
        row["config"] = config
    mine = update(tables.jobs).where(J.id == job.id, J.attempt == job.attempt, J.state.in_(OPEN))
    if connection.execute(mine.values(row)).rowcount == 0:
        return False
    told = {"result": result} if result is not None else {"error": error} if error is not None else {}
    note(connection, job, state, told)
    _root_ends(connection, job)
    return True


def cancel(connection: Connection, job: Job) -> list[Job]:
    """End a job, or all of a list that have not ended yet; those that were."""
    found = inside(connection, job, OPEN) if job.kind == "imports" else []
    return [one for one in found or [job] if end(connection, one, "cancelled")]


def inside(connection: Connection, root: Job, states: Sequence[str]) -> list[Job]:
    """The jobs of a list that are in some states, in its order."""
    rows = select(*COLUMNS).where(J.root == root.id, J.id != root.id, J.state.in_(states)).order_by(J.place)
    return [read(row) for row in connection.execute(rows).mappings()]


def ended(connection: Connection, idents: Sequence[str]) -> list[str]:
    """Which of some jobs have ended."""
    return [*connection.execute(select(J.id).where(J.id.in_(idents), J.state.in_(ENDED))).scalars()]


def again(connection: Connection, job: Job, request: Mapping[str, Any]) -> Job:
    """A new attempt of a job that has ended; raises ServiceError("not-ended")."""
    fresh_row = {
        "state": "queued", "step": None, "says": None, "result": None, "error": None, "started_at": None,
        "ended_at": None, "device": None, "attempt": J.attempt + 1, "enqueued": 0,
        "request": json.dumps(request),
    }  # fmt: skip
    mine = update(tables.jobs).where(J.id == job.id, J.state.in_(ENDED), J.attempt == job.attempt)
    if connection.execute(mine.values(fresh_row)).rowcount == 0:
        raise ServiceError("not-ended", job=job.id, state=job.state)
    if job.root != job.id:
        opened = {"state": "running", "ended_at": None, "result": None}
        connection.execute(update(tables.jobs).where(J.id == job.root).values(opened))
    note(connection, job, "queued", {"attempt": job.attempt + 1})
    return get(connection, job.id)


def note(connection: Connection, job: Job, kind: str, data: Mapping[str, Any]) -> None:
    """Append an event; its number is the next one of the root, in the order of commits."""
    grown = update(tables.jobs).where(J.id == job.root).values(events=J.events + 1).returning(J.events)
    number = connection.execute(grown).scalar_one()
    told = json.dumps({"attempt": job.attempt, **data})
    row = {"root": job.root, "number": number, "job": job.id, "type": kind, "data": told}
    connection.execute(insert(tables.events).values(**row, at=now()))


def events(connection: Connection, job: Job, after: int, limit: int) -> list[dict[str, Any]]:
    """Events behind a number; of a list those of all its jobs."""
    query = select(tables.events).where(E.root == job.root, E.number > after)
    query = query if job.id == job.root else query.where(E.job == job.id)
    rows = connection.execute(query.order_by(E.number).limit(limit)).mappings()
    return [{**row, "data": json.loads(row["data"])} for row in rows]


def before(connection: Connection, job: Job) -> int:
    """The number of the event before a job's latest attempt; 0 where it has one, and for a list."""
    if job.attempt == 1:
        return 0
    query = select(func.max(E.number)).where(E.root == job.root, E.job == job.id, E.type == "queued")
    return (connection.execute(query).scalar() or 1) - 1


def heads(connection: Connection, roots: Sequence[str]) -> dict[str, int]:
    """The number of the newest event of each."""
    query = select(J.id, J.events).where(J.id.in_(roots))
    return {row[0]: row[1] for row in connection.execute(query)}


def _root_begins(connection: Connection, job: Job) -> None:
    if job.root != job.id:
        waiting = update(tables.jobs).where(J.id == job.root, J.state == "queued")
        connection.execute(waiting.values(state="running", started_at=now()))


def _root_ends(connection: Connection, job: Job) -> None:
    """A list ends with its last job; the event before has locked its row, so one of two sees the other."""
    if job.root == job.id:
        return
    found = counts(connection, job.root)
    if any(found.get(state) for state in OPEN):
        return
    worst: State = next((s for s in ("failed", "cancelled") if found.get(s)), "succeeded")
    root = get(connection, job.root)
    mine = update(tables.jobs).where(J.id == root.id, J.state.in_(OPEN))
    connection.execute(mine.values(state=worst, ended_at=now(), result=json.dumps(found)))
    note(connection, root, worst, {"result": found})


def read(row: Mapping[str, Any] | Any) -> Job:
    """A job from a row of ``COLUMNS``."""
    told = {key: None if row[key] is None else json.loads(row[key]) for key in ("request", "result", "error")}
    return Job(**{f.name: row[f.name] for f in fields(Job)} | told)
