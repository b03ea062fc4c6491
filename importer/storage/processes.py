"""The processes that run jobs: what each can validate, and what wakes them."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from importer.config import now
from importer.frozen import frozen
from importer.storage.database import Database
from importer.storage.tables import executors

LEASE = 30.0  # seconds without a heartbeat after which a process counts as dead
X = executors.c


@frozen
class Executor:
    """A process; ``device`` is where it validates, ``None`` if it does not; ``memory`` in bytes.

    ``version`` is that of its workflows: it runs no job that was begun by another version.
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
        """Return the start time of the process, from its id."""
        return self.id.rpartition("-")[2]

    def can(self, engine: str | None, memory: int | None) -> bool:
        """Return whether it can run a validation; ``queue.claim`` selects by the same conditions."""
        return engine in self.engines and (memory is None or self.memory is None or memory <= self.memory)


def heartbeat(connection: Connection, executor: Executor) -> bool:
    """Record that a process is alive; true where it is new or was given up."""
    row = {"engines": json.dumps(executor.engines), "memory": executor.memory, "seen": time.time()}
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
    return Executor(**{**data, "engines": tuple(json.loads(data["engines"] or "[]"))})


CHANNEL = "importer_jobs"
LOOK = 0.5  # seconds between two looks at the file
AGAIN = 5.0  # seconds until another try where the connection was lost
LOG = logging.getLogger(__name__)


def signal(connection: Connection) -> None:
    """Notify the other processes, once this transaction is committed; SQLite needs no notice."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"NOTIFY {CHANNEL}"))


class Wakeups:
    """Sets an event of this process; ``wait`` returns at the event, at a change, or after some seconds."""

    def __init__(self, database: Database) -> None:
        self._database, self._ending = database, threading.Event()
        self.event = threading.Event()
        self._seen = self._state()
        self._thread = threading.Thread(target=self._listen, name="wakeups", daemon=True)

    def begin(self) -> None:
        """Begin to listen; SQLite needs no thread."""
        if not self._database.sqlite:
            self._thread.start()

    def end(self) -> None:
        """Stop listening and end a ``wait``."""
        self._ending.set()
        self.event.set()

    def wait(self, seconds: float) -> None:
        """Wait until there may be a job, at most so many seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.event.wait(min(left, LOOK) if self._database.sqlite else left) or self._changed():
                break
        self.event.clear()

    def _changed(self) -> bool:
        before, self._seen = self._seen, self._state()
        return self._seen != before

    def _state(self) -> tuple[int, int] | None:
        """Return time and size of the write-ahead log; ``None`` where there is none."""
        if not self._database.sqlite:
            return None
        try:
            found = os.stat(f"{self._database.url.database}-wal")  # noqa: PTH116 - a Path for each look costs
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _listen(self) -> None:
        while not self._ending.is_set():
            try:
                with self._database.engine.connect() as connection:
                    self._notified(connection.execution_options(isolation_level="AUTOCOMMIT"))
            except (SQLAlchemyError, OSError) as error:
                LOG.debug("not listening: %s", error)
                self._ending.wait(AGAIN)

    def _notified(self, connection: Connection) -> None:
        connection.execute(text(f"LISTEN {CHANNEL}"))
        driver: Any = connection.connection.driver_connection
        self.event.set()  # for what was missed until now
        try:
            while not self._ending.is_set():
                for _ in driver.notifies(timeout=AGAIN, stop_after=1):
                    self.event.set()
        except driver_error() as error:
            connection.invalidate()
            raise OSError(str(error)) from None
        finally:
            if not connection.invalidated:
                connection.execute(text("UNLISTEN *"))


def driver_error() -> type[Exception]:
    """Return the driver's error; the driver is loaded for PostgreSQL alone."""
    import psycopg

    return psycopg.Error
