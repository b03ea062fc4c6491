"""Wake a process when another one may have queued a job: without queries where nothing has changed.

In SQLite each commit changes the write-ahead log, so the file's state is compared. PostgreSQL notifies.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from importer.storage.database import Database

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
