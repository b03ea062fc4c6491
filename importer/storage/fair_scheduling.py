"""Turns: which waiting job is next, so that no caller and no list waits for the whole list of another.

Single jobs come before jobs of lists, since a person waits for them. After ``BURST`` single jobs in a row a
waiting list has a turn, so no list starves. In both lanes the caller with the oldest last turn is next.
The same holds for the lists of one caller. A new caller or list is next at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from importer.storage import tables

J, T = tables.jobs.c, tables.turns.c
BURST = 3  # turns of single jobs in a row while a list waits
PEOPLE, CALLERS, LISTS, STREAK = "people", "callers", "lists", "streak"
CLOCK = ("", "clock", "")
Turns = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
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
