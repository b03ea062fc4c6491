"""The database: an SQLite file or PostgreSQL, one transaction per change; ids, and a copy in use."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from importer.errors import DocumentError, ServiceError, Setting, UsageError
from importer.reasons import Reason, ReasonKind

THREADS = 48  # connections to an SQLite file that are kept: one for each thread that may query
PATIENCE = 30  # seconds that a writer waits for another one
BRIEFLY = 0.02  # seconds until what another connection refused is tried again
# libpq's: seconds to connect, milliseconds without an acknowledgement, where the system can.
NETWORK = {"connect_timeout": 10, "tcp_user_timeout": 1000 * PATIENCE}
CHANGES = 0x696D706F  # PostgreSQL's number for the lock that changes of the gallery hold
MIGRATIONS = 0x6D696772


class DatabaseReason(ReasonKind):
    """Why a database cannot be used."""

    FORM = "it has the form sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
    OWN_COPY = "PostgreSQL is copied by its own program: pg_dump with the custom format"


class Database:
    """Connections for reading and for writing; safe to use from several threads and processes."""

    def __init__(self, url: str) -> None:
        """Raise UsageError("bad-value") for a URL of another kind."""
        self.url = parsed(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if self.sqlite:
            Path(str(self.url.database)).parent.mkdir(parents=True, exist_ok=True)
        self.engine = _sqlite(self.url) if self.sqlite else _postgres(self.url)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that reads one consistent state."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes all or nothing. In SQLite writers come one after the other."""
        with self.engine.connect().execution_options(importer_writes=True) as connection, connection.begin():
            yield connection

    def alone(self, connection: Connection, number: int = CHANGES) -> None:
        """Keep out other transactions that need the same lock until this one ends."""
        if not self.sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": number})

    @property
    def place(self) -> str:
        """Return the file, or host and name, to show."""
        return (
            str(self.url.database) if self.sqlite else f"{self.url.host or 'localhost'}/{self.url.database}"
        )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def parsed(url: str) -> URL:
    """Return the parts of ``sqlite:///FILE`` or ``postgresql://…``; raises UsageError("bad-value")."""
    try:
        parts = make_url(url)
        kind = parts.get_backend_name()
    except (ArgumentError, ValueError):
        kind = ""
    if kind == "sqlite" and parts.database not in (None, "", ":memory:"):
        return parts
    if kind == "postgresql":
        return parts.set(drivername="postgresql+psycopg")
    raise UsageError("bad-value", setting=Setting.DATABASE, problem=Reason(DatabaseReason.FORM))


def need_file(url: str) -> Path | None:
    """Return the file of an SQLite database; raises ServiceError("no-gallery") where it is not there."""
    place = parsed(url)
    file = Path(str(place.database)) if place.get_backend_name() == "sqlite" else None
    if file is not None and not file.is_file():
        raise ServiceError("no-gallery", place=file, problem="there is no such file")
    return file


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, pool_size=THREADS, max_overflow=0, connect_args={"timeout": PATIENCE})

    @event.listens_for(engine, "connect")
    def opened(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        connection.execute(f"PRAGMA busy_timeout={PATIENCE * 1000}")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # A reader that became a writer halfway could not wait for the writer before it.
        writes = connection.get_execution_options().get("importer_writes")
        driver: Any = connection.connection.driver_connection  # SQLAlchemy's own way costs more than the rest
        try:
            driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        except sqlite3.Error as error:  # the rest catches SQLAlchemy's errors alone
            raise DBAPIError.instance("BEGIN", None, error, sqlite3.Error) from error

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on, once per file; raises sqlite3.OperationalError after PATIENCE s."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # SQLite's own patience does not cover this change: two that open a new file refuse each other.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(BRIEFLY)
        else:
            return


def _postgres(url: URL) -> Engine:
    return create_engine(url, pool_size=10, max_overflow=20, pool_pre_ping=True, connect_args=NETWORK)


def driver_message(error: Exception) -> str:
    """Return the first line of the driver's own message, without its advice."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = str(cause).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(cause).__name__


_lock = threading.Lock()
_last = 0


def fresh() -> str:
    """Return a new id; in one process each sorts behind all before it."""
    global _last  # noqa: PLW0603 - the clock may stand still between two calls
    with _lock:
        # 48 bits of milliseconds and 12 bits of their fractions, as RFC 9562 allows.
        ticks = time.time_ns() * 4096 // 1_000_000
        _last = max(_last + 1, ticks)
        ticks = _last
    bits = (ticks >> 12) << 80 | 7 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=bits))


def backup(url: str, target: Path) -> int:
    """Copy the database at ``url`` to a new file, checked and on the disk; return its bytes.

    The copy is one consistent state with every change that was committed before. Raises
    UsageError("bad-value") for PostgreSQL, ServiceError("no-gallery"), and DocumentError("cannot-write"),
    also where the file exists.
    """
    source = need_file(url)
    if source is None:
        raise UsageError("bad-value", setting=Setting.DATABASE, problem=Reason(DatabaseReason.OWN_COPY))
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        os.close(descriptor)
        part = Path(name)
        try:
            _copy(source, part)
            os.link(part, target)  # refuses a file that is there
            _synchronise(target.parent)
        finally:
            part.unlink()
    except OSError as error:
        raise DocumentError("cannot-write", path=target, problem=error.strerror) from None
    except sqlite3.Error as error:
        raise ServiceError("no-gallery", place=source, problem=str(error)) from None
    return target.stat().st_size


def _copy(source: Path, part: Path) -> None:
    """Copy all pages at once: writers go on meanwhile, and the copy has none of their later changes."""
    with (
        contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as old,
        contextlib.closing(sqlite3.connect(part)) as new,
    ):
        old.execute(f"PRAGMA busy_timeout={PATIENCE * 1000}")
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")  # one file, with nothing in a log beside it
        found = [row[0] for row in new.execute("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise sqlite3.DatabaseError(found[0])
        if not new.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
            raise sqlite3.DatabaseError("it holds no gallery")
    _synchronise(part)


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
