"""Jobs and their events as rows: the request, the progress and the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NotRequired, TypedDict, cast

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, insert, select, update

from importer.config import now
from importer.errors import ServiceError
from importer.frozen import frozen
from importer.storage import tables
from importer.storage.database import fresh
from importer.storage.processes import signal

J, E, S = tables.jobs.c, tables.events.c, tables.steps.c
Kind = Literal["import", "imports", "validation", "recheck"]
State = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled"]
OPEN = ("queued", "running")
WAITING: State = "waiting"  # the attempt has ended with a question, and a retry answers it
ENDED = (WAITING, "succeeded", "failed", "cancelled")
CANCELLABLE = (*OPEN, WAITING)
WAKING = ("queued", *ENDED)  # events after which a process may have a job to claim


class Failure(TypedDict):
    """Why a job failed: the kind and its text, and the fields of the request that it is about."""

    kind: str
    detail: str
    hint: str
    errors: NotRequired[list[dict[str, object]]]
    conflicts: NotRequired[list[dict[str, object]]]
    candidates: NotRequired[list[dict[str, object]]]


def unanswered(error: Failure) -> bool:
    """Return whether a failure asks for a choice: of a backend, or of a side of each conflict."""
    return "candidates" in error or "conflicts" in error


class Event(TypedDict):
    """An event of a job: its number among those of the root, its type, and data by type."""

    root: str
    number: int
    job: str
    type: str
    at: str
    data: Mapping[str, object]


class StepEvent(TypedDict):
    """The data of an event that begins a step, and its time."""

    attempt: int
    step: str
    at: str


@frozen
class Job:
    """One job; ``root`` is the list it belongs to, or itself.

    ``executor`` is the process that runs it, ``claims`` how often this attempt was begun by one.
    """

    id: str
    kind: Kind
    root: str
    place: int
    state: State
    step: str | None
    says: str | None
    request: Mapping[str, Any]
    result: Mapping[str, object] | None
    error: Failure | None
    by: str
    config: str | None
    engine: str | None
    memory: int | None
    device: str | None
    executor: str | None
    version: str | None
    attempt: int
    claims: int
    events: int
    created_at: str
    started_at: str | None
    ended_at: str | None


COLUMNS = [J[f.name] for f in fields(Job)]


def create(
    connection: Connection,
    kind: Kind,
    request: Mapping[str, object],
    by: str,
    *,
    root: Job | None = None,
    place: int = 0,
    config: str | None = None,
    engine: str | None = None,
    memory: int | None = None,
    text: str | None = None,
) -> Job:
    """Add a queued job, alone or in the list ``root``; ``text`` is what it waits for."""
    ident = fresh()
    row = {
        "id": ident, "kind": kind, "root": root.id if root else ident, "place": place, "state": "queued",
        "request": json.dumps(request), "says": text, "by": by, "config": config, "engine": engine,
        "memory": memory, "attempt": 1, "claims": 0, "events": 0,
        "created_at": now(),
    }  # fmt: skip
    connection.execute(insert(tables.jobs).values(**row))
    job = get(connection, ident)
    if root is None:
        note(connection, job, "queued", {} if text is None else {"says": text})
    return job


def get(connection: Connection, ident: str) -> Job:
    """Return a job; raises ServiceError("no-such-job")."""
    row = connection.execute(select(*COLUMNS).where(J.id == ident)).mappings().first()
    if row is None:
        raise ServiceError("no-such-job", job=ident)
    return read(row)


@frozen
class JobFilters:
    """Which jobs a list has: those of ``root``; else jobs of lists are left out, unless a document is named.

    ``since`` selects jobs that were created, begun or ended at that time or later.
    """

    states: Sequence[str] = ()
    kind: str | None = None
    config: str | None = None
    root: str | None = None
    since: str | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions of the rows."""
        found = [column == value for column, value in ((J.kind, self.kind), (J.config, self.config)) if value]
        if self.root is not None:
            found += [J.root == self.root, J.id != self.root]
        elif self.config is None:
            found.append(J.root == J.id)
        if self.states:
            found.append(J.state.in_(self.states))
        if self.since is not None:
            found.append(func.coalesce(J.ended_at, J.started_at, J.created_at) >= self.since)
        return found


def page(
    connection: Connection, limit: int, filters: JobFilters | None = None, *, behind: str | None = None,
    oldest_first: bool = False,
) -> list[Job]:  # fmt: skip
    """Return the newest jobs, those behind an id; of a list its jobs in their order, those behind a place."""
    chosen = filters or JobFilters()
    column: ColumnElement[Any] = J.id if chosen.root is None else J.place
    forward = oldest_first or chosen.root is not None
    query = select(*COLUMNS).where(*chosen.conditions).order_by(column if forward else column.desc())
    if behind is not None:
        place = behind if chosen.root is None else int(behind)
        query = query.where(column > place if forward else column < place)
    return [read(row) for row in connection.execute(query.limit(limit)).mappings()]


def total(connection: Connection, filters: JobFilters) -> int:
    """Return how many jobs a list has in all."""
    return connection.execute(select(func.count(J.id)).where(*filters.conditions)).scalar_one()


def newest(connection: Connection, kind: Kind, limit: int) -> list[Job]:
    """Return the newest jobs of a kind, those of lists included."""
    query = select(*COLUMNS).where(J.kind == kind).order_by(J.id.desc()).limit(limit)
    return [read(row) for row in connection.execute(query).mappings()]


def open_of(connection: Connection, kind: Kind, config: str) -> list[Job]:
    """Return the jobs of a kind that wait or run for a document, the oldest first."""
    query = select(*COLUMNS).where(J.kind == kind, J.config == config, J.state.in_(OPEN)).order_by(J.id)
    return [read(row) for row in connection.execute(query).mappings()]


def counts(connection: Connection, root: str) -> dict[str, int]:
    """Return how many jobs of a list are in which state."""
    query = select(J.state, func.count()).where(J.root == root, J.id != root).group_by(J.state)
    return {row[0]: row[1] for row in connection.execute(query)}


def leased(job: Job) -> list[ColumnElement[bool]]:
    """Return the conditions of a row that is open and still leased to the job's process."""
    executor = J.executor.is_(None) if job.executor is None else J.executor == job.executor
    return [J.id == job.id, J.attempt == job.attempt, J.claims == job.claims, executor, J.state.in_(OPEN)]


def begin(connection: Connection, job: Job, step: str, number: int = 1, of: int = 1) -> bool:
    """Record that a step begins, ``number`` of so many; false where the job is no longer leased."""
    started = func.coalesce(J.started_at, now())
    row = {"state": "running", "step": step, "says": None, "started_at": started}
    if connection.execute(update(tables.jobs).where(*leased(job)).values(row)).rowcount == 0:
        return False
    note(connection, job, "step", {"step": step, "number": number, "of": of})
    _root_begins(connection, job)
    return True


def report(connection: Connection, job: Job, text: str, figures: Mapping[str, object]) -> None:
    """Record progress within a step: its text, the step, and what is done of how much."""
    leased_row = update(tables.jobs).where(*leased(job), J.state == "running")
    if connection.execute(leased_row.values(says=text)).rowcount:
        note(connection, job, "progress", {"says": text, **figures})


def fail(connection: Connection, job: Job, error: Failure) -> bool:
    """End a job with its failure, or let it wait for an answer; false as ``end`` is."""
    return end(connection, job, WAITING if unanswered(error) else "failed", error=error)


def end(
    connection: Connection,
    job: Job,
    state: State,
    *,
    result: Mapping[str, object] | None = None,
    error: Failure | None = None,
    config: str | None = None,
) -> bool:
    """End a job once; false where it has ended before, or is no longer leased to its process."""
    row = {
        "result": None if result is None else json.dumps(result),
        "error": None if error is None else json.dumps(error),
    }  # fmt: skip
    if config is not None:
        row["config"] = config
    data = {"result": result} if result is not None else {"error": error} if error is not None else {}
    return _end(connection, job, leased(job), state, row, data)


def _end(
    connection: Connection, job: Job, conditions: Sequence[ColumnElement[bool]], state: State,
    row: Mapping[str, object], data: Mapping[str, object], *, whole: bool = False,
) -> bool:  # fmt: skip
    ended = {"state": state, "ended_at": now(), "says": None, "executor": None, **row}
    if connection.execute(update(tables.jobs).where(*conditions).values(ended)).rowcount == 0:
        return False
    connection.execute(delete(tables.steps).where(S.job == job.id))
    note(connection, job, state, data)
    _root_ends(connection, job, cancelled=whole)
    return True


def cancel(connection: Connection, job: Job) -> list[Job]:
    """Cancel a job, or all of a list that are open or wait for an answer, on any process; return those that
    were ended.

    A list that was cancelled is ``cancelled``, also where some of its jobs had failed before.
    """
    if job.kind != "imports":
        return [job] if _cancel(connection, job) else []
    return [one for one in inside(connection, job, CANCELLABLE) if _cancel(connection, one, whole=True)]


def _cancel(connection: Connection, job: Job, *, whole: bool = False) -> bool:
    """End this attempt, also while a process claims it; ``whole`` where the list is cancelled with it."""
    attempt = [J.id == job.id, J.attempt == job.attempt, J.state.in_(CANCELLABLE)]
    return _end(connection, job, attempt, "cancelled", {"result": None, "error": None}, {}, whole=whole)


def inside(connection: Connection, root: Job, states: Sequence[str]) -> list[Job]:
    """Return a list's jobs in some states, in order, locked until the transaction ends.

    A writer of events of several jobs locks these before the list, as the jobs' processes do.
    """
    rows = select(*COLUMNS).where(J.root == root.id, J.id != root.id, J.state.in_(states)).order_by(J.place)
    return [read(row) for row in connection.execute(rows.with_for_update()).mappings()]


def again(connection: Connection, job: Job, request: Mapping[str, object]) -> Job:
    """Begin another attempt of a job that has ended; raises ServiceError("not-ended")."""
    fresh_row = {
        "state": "queued", "step": None, "says": None, "result": None, "error": None, "started_at": None,
        "ended_at": None, "device": None, "version": None, "attempt": J.attempt + 1,
        "claims": 0, "request": json.dumps(request),
    }  # fmt: skip
    same_attempt = update(tables.jobs).where(J.id == job.id, J.state.in_(ENDED), J.attempt == job.attempt)
    if connection.execute(same_attempt.values(fresh_row)).rowcount == 0:
        raise ServiceError("not-ended", job=job.id, state=job.state)
    if job.root != job.id:
        opened = {"state": "running", "ended_at": None, "result": None}
        connection.execute(update(tables.jobs).where(J.id == job.root).values(opened))
    note(connection, job, "queued", {"attempt": job.attempt + 1})
    return get(connection, job.id)


def note(connection: Connection, job: Job, kind: str, data: Mapping[str, object]) -> None:
    """Add an event; its number is the next one of the root, in the order of commits."""
    grown = update(tables.jobs).where(J.id == job.root).values(events=J.events + 1).returning(J.events)
    number = connection.execute(grown).scalar_one()
    text = json.dumps({"attempt": job.attempt, **data})
    row = {"root": job.root, "number": number, "job": job.id, "type": kind, "data": text}
    connection.execute(insert(tables.events).values(**row, at=now()))
    if kind in WAKING:
        signal(connection)


def events(connection: Connection, job: Job, after: int, limit: int) -> list[Event]:
    """Return the events behind a number; of a list those of all its jobs."""
    query = select(tables.events).where(E.root == job.root, E.number > after)
    query = query if job.id == job.root else query.where(E.job == job.id)
    rows = connection.execute(query.order_by(E.number).limit(limit)).mappings()
    return [cast("Event", {**row, "data": json.loads(row["data"])}) for row in rows]


def before(connection: Connection, job: Job) -> int:
    """Return the number of the event before a job's latest attempt; 0 for its only one, and for a list."""
    if job.attempt == 1:
        return 0
    query = select(func.max(E.number)).where(E.root == job.root, E.job == job.id, E.type == "queued")
    return (connection.execute(query).scalar() or 1) - 1


def heads(connection: Connection, roots: Sequence[str]) -> dict[str, int]:
    """Return the number of the newest event of each."""
    query = select(J.id, J.events).where(J.id.in_(roots))
    return {row[0]: row[1] for row in connection.execute(query)}


def _root_begins(connection: Connection, job: Job) -> None:
    if job.root != job.id:
        waiting = update(tables.jobs).where(J.id == job.root, J.state == "queued")
        connection.execute(waiting.values(state="running", started_at=now()))


def _root_ends(connection: Connection, job: Job, *, cancelled: bool) -> None:
    """End a list with its last job; the event before has locked its row, so one of two sees the other."""
    if job.root == job.id:
        return
    states = counts(connection, job.root)
    root = get(connection, job.root)
    note(connection, root, "progress", _list_progress(states))
    if any(states.get(state) for state in OPEN):
        return
    grave: Sequence[State] = ("failed", WAITING, "cancelled")
    worst: State = next((s for s in grave if states.get(s)), "succeeded")
    state: State = "cancelled" if cancelled else worst
    mine = update(tables.jobs).where(J.id == root.id, J.state.in_(CANCELLABLE))
    if connection.execute(mine.values(state=state, ended_at=now(), result=json.dumps(states))).rowcount:
        note(connection, root, state, {"result": states})


def _list_progress(states: Mapping[str, int]) -> dict[str, object]:
    """Return how many jobs of a list have ended, of how many, and how."""
    done, total = sum(states.get(state, 0) for state in ENDED), sum(states.values())
    passed = states.get("succeeded", 0)
    return {
        "says": f"{done} of {total}", "done": done, "total": total, "unit": "items",
        "passed": passed, "failed": done - passed - states.get(WAITING, 0),
    }  # fmt: skip


def read(row: RowMapping) -> Job:
    """Return the job of a row of ``COLUMNS``."""
    data = {key: None if row[key] is None else json.loads(row[key]) for key in ("request", "result", "error")}
    return Job(**{f.name: row[f.name] for f in fields(Job)} | data)


RECENTLY = timedelta(hours=24)  # how long a failure is shown
SHOWN = 5  # jobs that run, by name


@frozen
class BegunStep:
    """A step that has begun, and its seconds; ``None`` while it runs."""

    name: str
    at: str
    seconds: float | None


def begun(connection: Connection, job: Job) -> list[BegunStep]:
    """Return the steps of a job's present attempt that have begun, in their order."""
    query = select(E.at, E.data).where(E.root == job.root, E.job == job.id, E.type == "step")
    rows = connection.execute(query.order_by(E.number))
    events = [cast("StepEvent", {**json.loads(row.data), "at": row.at}) for row in rows]
    return _steps(events, job.attempt, job.ended_at)


def figures(connection: Connection, job: Job) -> dict[str, object]:
    """Return the newest figures of progress of the present attempt; empty without any."""
    query = select(E.data).where(E.root == job.root, E.job == job.id, E.type == "progress")
    found = connection.execute(query.order_by(E.number.desc()).limit(1)).scalar()
    data: dict[str, object] = {} if found is None else json.loads(found)
    return data if data.get("attempt") == job.attempt else {}


def summary(connection: Connection) -> dict[str, object]:
    """Return how many jobs queue, run, wait for an answer, and failed of late, and those that run."""
    unsettled = select(J.state, func.count()).where(J.state.in_(CANCELLABLE), J.kind != "imports")
    counts = {row[0]: row[1] for row in connection.execute(unsettled.group_by(J.state))}
    since = (datetime.now(UTC) - RECENTLY).isoformat(timespec="seconds")
    failed = select(func.count()).where(J.state == "failed", J.kind != "imports", J.ended_at >= since)
    members = (J.id, J.kind, J.config, J.step, J.says, J.started_at)
    running = select(*members).where(J.state == "running", J.kind != "imports").order_by(J.id).limit(SHOWN)
    return {
        "queued": counts.get("queued", 0), "running": counts.get("running", 0),
        "waiting": counts.get(WAITING, 0),
        "failed": connection.execute(failed).scalar_one(),
        "jobs": [
            {("message" if key == "says" else key): value for key, value in row.items()}
            for row in connection.execute(running).mappings()
        ],
    }  # fmt: skip


def _steps(events: Sequence[StepEvent], attempt: int, ended: str | None) -> list[BegunStep]:
    """Return the steps of an attempt; a step that another process began again counts from then."""
    own = {one["step"]: one for one in events if one["attempt"] == attempt}
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
