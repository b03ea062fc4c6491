"""The processes that run jobs: who is there, what each can validate, who has not been seen for long."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, delete, insert, select, update

from importer.app.import_ import now
from importer.gallery.tables import executors

LEASE = 30.0  # seconds without a sign of life after which a process counts as dead
X = executors.c


@dataclass(frozen=True, slots=True)
class Executor:
    """A process; ``device`` is where it validates, ``None`` if it does not; ``memory`` in bytes.

    ``version`` is that of its workflows: another version's jobs are not its own.
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

    @property
    def born(self) -> str:
        """When the process was started, as its id tells."""
        return self.id.rpartition("-")[2]

    def can(self, engine: str | None, memory: int | None) -> bool:
        """Whether it can run a validation."""
        return engine in self.engines and (memory is None or self.memory is None or memory <= self.memory)


def sign(connection: Connection, one: Executor) -> bool:
    """Say that a process is there; true where nobody had known it, or it was taken for dead."""
    row = {"engines": json.dumps(one.engines), "memory": one.memory, "seen": time.time()}
    if connection.execute(update(executors).where(X.id == one.id).values(row)).rowcount:
        return False
    known = {"id": one.id, "place": one.place, "host": one.host, "pid": one.pid, "device": one.device}
    known["version"] = one.version
    connection.execute(insert(executors).values(**known, **row, started_at=now()))
    return True


def everyone(connection: Connection) -> list[Executor]:
    """All that have signed and were not forgotten."""
    return [_executor(row) for row in connection.execute(select(executors))]


def forget(connection: Connection, idents: Sequence[str]) -> None:
    """Take away the rows of processes whose work others have taken over."""
    connection.execute(delete(executors).where(X.id.in_(idents)))


def overdue(one: Executor) -> bool:
    """Whether a process has not been seen for longer than it may be silent, if its clock is right."""
    return time.time() - one.seen > LEASE


class Silence:
    """Who gives no sign for too long, by the clock of the process that looks: those of others may differ."""

    def __init__(self) -> None:
        self._signs: dict[str, tuple[float, float]] = {}
        self._looked = time.monotonic()

    def of(self, found: Sequence[Executor]) -> set[str]:
        """The ids of those whose last sign was there ``LEASE`` seconds ago and is the last one still."""
        now = time.monotonic()
        # Whoever was away for that long itself, or whose database was, knows nothing of the others.
        old = self._signs if now - self._looked < LEASE else {}
        self._looked = now
        self._signs = {
            one.id: old[one.id] if old.get(one.id, (None,))[0] == one.seen else (one.seen, now)
            for one in found
        }
        return {ident for ident, (_, since) in self._signs.items() if now - since > LEASE}


def _executor(row: Row[tuple[object, ...]]) -> Executor:
    said = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    return Executor(**{**said, "engines": tuple(json.loads(said["engines"] or "[]"))})
