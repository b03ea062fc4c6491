"""The queue: jobs are claimed, run under a lease, and come back when their process dies.

A process holds a job while the row names it as ``executor`` under the same attempt and number of claims, and
while its own row in ``executors`` has a heartbeat. Its writes to the job are refused otherwise.

Turns: which waiting job is next, so that no caller and no list waits for the whole list of another.

Single jobs come before jobs of lists, since a person waits for them. After ``BURST`` single jobs in a row a
waiting list has a turn, so no list starves. In both lanes the caller with the oldest last turn is next.
The same holds for the lists of one caller. A new caller or list is next at once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, update

from importer.frozen import frozen
from importer.storage import jobs, tables
from importer.storage.jobs import COLUMNS, OPEN, Job, Kind
from importer.storage.processes import Executor, signal

J, S, T, X = tables.jobs.c, tables.steps.c, tables.turns.c, tables.executors.c
BURST = 3  # turns of single jobs in a row while a list waits
PEOPLE, CALLERS, LISTS, STREAK = "people", "callers", "lists", "streak"
CLOCK = ("", "clock", "")
Turns = Mapping[tuple[str, str], int]


@frozen
class Flow:
    """Waiting jobs of one caller: its single jobs, or those of the list ``root``."""

    by: str
    root: str | None = None

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Return the keys of its turns, the caller's first."""
        return [(PEOPLE, self.by)] if self.root is None else [(CALLERS, self.by), (LISTS, self.root)]

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions of its jobs."""
        return [J.by == self.by, J.place == 0 if self.root is None else J.root == self.root]


def choose(connection: Connection, kind: str, claimable: Sequence[ColumnElement[bool]]) -> str | None:
    """Return the id of the job that is next, locked, and record the turn; ``None`` where none waits.

    The clock's row lets one process choose at a time; a job that another transaction holds is skipped.
    """
    clock = select(T.number).where(T.kind == CLOCK[0], T.lane == CLOCK[1]).with_for_update()
    now = connection.execute(clock).scalar_one() + 1
    turns = _turns(connection, kind)
    people = _flows(connection, claimable, lists=False)
    lists = _flows(connection, claimable, lists=True)
    for flow in _ordered(people, lists, turns):
        first = select(J.id).where(*claimable, *flow.conditions).order_by(J.place, J.id).limit(1)
        ident = connection.execute(first.with_for_update(skip_locked=True)).scalar()
        if ident is not None:
            passed_over = flow.root is None and bool(lists)
            streak = turns.get((STREAK, ""), 0) + 1 if passed_over else 0
            _record(connection, kind, {**dict.fromkeys(flow.keys, now), (STREAK, ""): streak}, now)
            return str(ident)
    return None


def forget(connection: Connection) -> None:
    """Delete the turns of lists that have ended."""
    still_open = select(J.root).where(J.ended_at.is_(None))
    connection.execute(delete(tables.turns).where(T.lane == LISTS, T.flow.not_in(still_open)))


def _ordered(people: list[Flow], lists: list[Flow], turns: Turns) -> Iterator[Flow]:
    """Yield the flows, the next one first."""

    def last(flow: Flow) -> tuple[int, ...]:
        return tuple(turns.get(key, 0) for key in flow.keys)

    lanes = [sorted(people, key=last), sorted(lists, key=last)]
    if turns.get((STREAK, ""), 0) >= BURST:
        lanes.reverse()
    for lane in lanes:
        yield from lane


def _flows(connection: Connection, claimable: Sequence[ColumnElement[bool]], *, lists: bool) -> list[Flow]:
    if not lists:
        query = select(J.by).where(*claimable, J.place == 0).group_by(J.by)
        return [Flow(by) for by in connection.execute(query.order_by(J.by)).scalars()]
    grouped = select(J.by, J.root).where(*claimable, J.place > 0).group_by(J.by, J.root)
    return [Flow(*row) for row in connection.execute(grouped.order_by(J.root))]


def _turns(connection: Connection, kind: str) -> Turns:
    rows = connection.execute(select(T.lane, T.flow, T.number).where(T.kind == kind))
    return {(row.lane, row.flow): row.number for row in rows}


def _record(connection: Connection, kind: str, turns: Turns, now: int) -> None:
    for (lane, flow), number in turns.items():
        _set(connection, (kind, lane, flow), number)
    _set(connection, CLOCK, now)


def _set(connection: Connection, key: tuple[str, str, str], number: int) -> None:
    same = update(tables.turns).where(T.kind == key[0], T.lane == key[1], T.flow == key[2])
    if connection.execute(same.values(number=number)).rowcount == 0:
        row = dict(zip(("kind", "lane", "flow"), key, strict=True))
        connection.execute(insert(tables.turns).values(**row, number=number))


MAX_CLAIMS = 100  # of one attempt: a job that kills its process that often is given up


def waiting(connection: Connection, executor: Executor, kind: Kind) -> bool:
    """Return whether a claim is likely to get a job; locks nothing."""
    query = select(J.id).where(*_claimable(executor, kind)).limit(1)
    return connection.execute(query).first() is not None


def claim(connection: Connection, executor: Executor, kind: Kind) -> Job | None:
    """Lease a job of a kind to a process that can run it; its device runs one at a time.

    A job that another process has begun comes first, then the one whose turn it is. In SQLite the transaction
    is the only writer. In PostgreSQL the rows of the processes that share the device are locked first, and a
    job that another one claims at this moment is skipped.
    """
    mine = (
        X.id == executor.id
        if executor.device is None
        else or_(X.id == executor.id, X.device == executor.device)
    )
    sharing = connection.execute(select(X.id).where(mine).order_by(X.id).with_for_update()).scalars().all()
    if executor.id not in sharing:  # taken for dead: its next heartbeat comes first
        return None
    claimable = _claimable(executor, kind)
    begun = select(J.id).where(*claimable, _begun()).order_by(J.id).limit(1)
    ident = connection.execute(begun.with_for_update(skip_locked=True)).scalar()
    if ident is None:
        ident = choose(connection, kind, claimable)
    if ident is None:
        return None
    leased: dict[str, object] = {"executor": executor.id, "version": executor.version, "claims": J.claims + 1}
    if kind == "validation":
        leased["device"] = executor.device
    connection.execute(update(tables.jobs).where(J.id == ident).values(leased))
    return jobs.get(connection, ident)


def _begun() -> ColumnElement[bool]:
    return or_(J.state == "running", J.device.is_not(None))


def _claimable(executor: Executor, kind: Kind) -> list[ColumnElement[bool]]:
    """Return the conditions of jobs without a process, of this version, with claims left."""
    free = [
        J.kind == kind, J.state.in_(OPEN), J.executor.is_(None), J.ended_at.is_(None), J.claims < MAX_CLAIMS,
        or_(J.version.is_(None), J.version == executor.version),
    ]  # fmt: skip
    return [*free, _on_device(executor)] if kind == "validation" else free


def _on_device(executor: Executor) -> ColumnElement[bool]:
    """Return the condition of a device: the job that it has begun, else those that its engines and memory
    fit.
    """
    other = tables.jobs.alias()
    busy = select(other.c.id).where(other.c.device == executor.device, other.c.state.in_(OPEN)).exists()
    new = J.device.is_(None) & J.engine.in_(executor.engines) & ~busy
    if executor.memory is not None:
        new &= or_(J.memory.is_(None), J.memory <= executor.memory)
    return or_(J.device == executor.device, new)


def lost(connection: Connection, live: Collection[Job]) -> list[str]:
    """Return the ids of jobs that are no longer leased to their process: ended, cancelled or another's."""
    query = select(J.id, J.executor, J.attempt, J.claims).where(
        J.id.in_([job.id for job in live]), J.state.in_(OPEN)
    )
    leased = {(row.id, row.executor, row.attempt, row.claims) for row in connection.execute(query)}
    return [job.id for job in live if (job.id, job.executor, job.attempt, job.claims) not in leased]


def results(connection: Connection, job: Job) -> dict[str, Mapping[str, Any]]:
    """Return the results of the steps that this attempt has finished."""
    rows = connection.execute(select(S.name, S.result).where(S.job == job.id))
    return {row.name: json.loads(row.result) for row in rows}


def record(connection: Connection, job: Job, step: str, result: Mapping[str, object]) -> bool:
    """Record the result of a finished step; false where the job is no longer leased to its process."""
    if connection.execute(update(tables.jobs).where(*jobs.leased(job)).values(step=step)).rowcount == 0:
        return False
    connection.execute(insert(tables.steps).values(job=job.id, name=step, result=json.dumps(result)))
    return True


def release(connection: Connection, executors: Collection[str], keep: Collection[str] = ()) -> int:
    """Give back the jobs of some processes but those to ``keep``; steps that are recorded stay."""
    conditions = (J.executor.in_(executors), J.state.in_(OPEN), J.id.not_in(keep))
    if connection.execute(select(J.id).where(*conditions).limit(1)).first() is None:
        return 0
    released = connection.execute(update(tables.jobs).where(*conditions).values(executor=None)).rowcount
    signal(connection)
    return released


def orphaned(connection: Connection, devices: Collection[str]) -> list[Job]:
    """Return the validations of devices that no process serves any more."""
    return _select(connection, J.device.is_not(None), J.device.not_in(devices), J.executor.is_(None))


def outdated(connection: Connection, versions: Collection[str | None]) -> list[Job]:
    """Return the jobs that were begun by a version that no process runs any more."""
    running = [version for version in versions if version is not None]
    return _select(connection, J.version.is_not(None), J.version.not_in(running), J.executor.is_(None))


def exhausted(connection: Connection) -> list[Job]:
    """Return the jobs that have killed too many processes."""
    return _select(connection, J.claims >= MAX_CLAIMS, J.executor.is_(None))


def restart(connection: Connection, job: Job, cause: str) -> bool:
    """Let a job without a process begin from its first step as another attempt; false where it cannot."""
    free = (J.id == job.id, J.attempt == job.attempt, J.executor.is_(None), J.state.in_(OPEN))
    row = {"version": None, "claims": 0, "state": "queued", "step": None, "says": None, "device": None}
    again = update(tables.jobs).where(*free).values(**row, attempt=job.attempt + 1)
    if connection.execute(again).rowcount == 0:
        return False
    connection.execute(delete(tables.steps).where(S.job == job.id))
    jobs.note(connection, job, "queued", {"attempt": job.attempt + 1, "says": cause})
    return True


def _select(connection: Connection, *conditions: ColumnElement[bool]) -> list[Job]:
    query = select(*COLUMNS).where(J.kind != "imports", J.state.in_(OPEN), *conditions).order_by(J.id)
    return [jobs.read(row) for row in connection.execute(query).mappings()]
