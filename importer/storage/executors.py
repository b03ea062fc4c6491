"""The processes that run jobs: what each can validate, and the time of its last heartbeat."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Row, delete, insert, select, update

from importer.config import now
from importer.storage.tables import executors

LEASE = 30.0  # seconds without a heartbeat after which a process counts as dead
X = executors.c


@dataclass(frozen=True, slots=True)
class Executor:
    """A process; ``device`` is where it validates, ``None`` if it does not; ``memory`` in bytes.

    ``version`` is that of its workflows: it runs no job that was begun by another version. ``budget`` is what
    the Hub left it at its last heartbeat, by quota.
    """

    id: str
    place: str
    host: str
    pid: int
    started_at: str
    seen: float
    device: str | None = None
    engines: tuple[str, ...] = ()
    memory: int | None = None
    version: str | None = None
    budget: Mapping[str, int] = field(default_factory=dict)
    pools: tuple[str, ...] = ()  # that it knows; no row has them

    @property
    def born(self) -> str:
        """Return the start time of the process, from its id."""
        return self.id.rpartition("-")[2]

    def can(self, engine: str | None, memory: int | None) -> bool:
        """Return whether it can run a validation; ``queue.claim`` selects by the same conditions."""
        return engine in self.engines and (memory is None or self.memory is None or memory <= self.memory)


def hub_left(running: Iterable[Executor]) -> dict[str, int]:
    """Return by quota the requests that the Hub leaves the process with the fewest."""
    left: dict[str, int] = {}
    for one in running:
        for quota, number in one.budget.items():
            left[quota] = min(number, left.get(quota, number))
    return left


def heartbeat(connection: Connection, executor: Executor, budget: Mapping[str, int] | None = None) -> bool:
    """Record that a process is alive, and what the Hub leaves it; true where it is new or was given up."""
    row = {
        "engines": json.dumps(executor.engines), "memory": executor.memory, "seen": time.time(),
        "budget": json.dumps(budget or {}),
    }  # fmt: skip
    if connection.execute(update(executors).where(X.id == executor.id).values(row)).rowcount:
        return False
    fixed = {name: getattr(executor, name) for name in ("id", "place", "host", "pid", "device", "version")}
    connection.execute(insert(executors).values(**fixed, **row, started_at=now()))
    return True


def all_executors(connection: Connection) -> list[Executor]:
    """Return all processes with a row, also dead ones that are not deleted yet."""
    return [_executor(row) for row in connection.execute(select(executors))]


def remove(connection: Connection, idents: Collection[str]) -> None:
    """Delete the rows of dead processes."""
    connection.execute(delete(executors).where(X.id.in_(idents)))


def overdue(executor: Executor) -> bool:
    """Return whether a process has been silent for longer than its lease, if its clock is right."""
    return time.time() - executor.seen > LEASE


class LeaseMonitor:
    """Finds expired leases by the clock of the process that looks: those of others may differ."""

    def __init__(self) -> None:
        self._heartbeats: dict[str, tuple[float, float]] = {}
        self._looked = time.monotonic()

    def expired(self, executors: Sequence[Executor]) -> set[str]:
        """Return the ids of processes whose newest heartbeat has been known for ``LEASE`` seconds."""
        now = time.monotonic()
        # A process that was away for that long itself, or whose database was, knows nothing of the others.
        old = self._heartbeats if now - self._looked < LEASE else {}
        self._looked = now
        self._heartbeats = {
            one.id: old[one.id] if old.get(one.id, (None,))[0] == one.seen else (one.seen, now)
            for one in executors
        }
        return {ident for ident, (_, since) in self._heartbeats.items() if now - since > LEASE}


def _executor(row: Row[tuple[object, ...]]) -> Executor:
    data = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    kept = {
        "engines": tuple(json.loads(data["engines"] or "[]")),
        "budget": json.loads(data["budget"] or "{}"),
    }
    return Executor(**{**data, **kept})
