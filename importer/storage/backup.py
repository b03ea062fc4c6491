"""A copy of an SQLite gallery that is in use; PostgreSQL has ``pg_dump``."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

from importer.errors import DocumentError, ServiceError, Setting, UsageError
from importer.reasons import Reason
from importer.storage.database import PATIENCE, DatabaseReason, parsed


def backup(url: str, target: Path) -> int:
    """Copy the database at ``url`` to a new file, checked and on the disk; return its bytes.

    The copy is one consistent state with every change that was committed before. Raises
    UsageError("bad-value") for PostgreSQL, ServiceError("no-gallery"), and DocumentError("cannot-write"),
    also where the file exists.
    """
    place = parsed(url)
    if place.get_backend_name() != "sqlite":
        raise UsageError("bad-value", setting=Setting.DATABASE, problem=Reason(DatabaseReason.OWN_COPY))
    source = Path(str(place.database))
    try:
        if not source.is_file():
            raise ServiceError("no-gallery", place=source, problem="there is no such file")
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
