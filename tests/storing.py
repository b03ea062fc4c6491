"""An empty gallery on SQLite and on a real PostgreSQL, jobs in it, and processes that claim them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from importer.storage import jobs, processes, queue
from importer.storage.database import Database
from importer.storage.jobs import Job, Kind
from importer.storage.processes import Executor
from importer.storage.schema import prepare
from tests.postgres import Postgres

ON_BOTH = pytest.mark.parametrize("empty", ["sqlite", "postgresql"], indirect=True)  # where they may differ


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables."""
    kept = request.param == "postgresql"
    server: Postgres | None = request.getfixturevalue("postgres") if kept else None
    database = Database(server.fresh() if server else f"sqlite:///{tmp_path / 'gallery.sqlite'}")
    yield database
    database.close()


@pytest.fixture
def database(empty: Database) -> Database:
    prepare(empty)
    return empty


def asked(database: Database, kind: Any, by: str = "ann", **said: Any) -> Job:
    with database.writing() as connection:
        return jobs.create(connection, kind, {}, by, **said)


def worker(database: Database, name: str, device: str | None = None, **more: Any) -> Executor:
    """A process that has sent its first heartbeat."""
    said = {"engines": ("mlx",), "version": "2", **more}
    one = Executor(name, "here", "vm", 1, "", 0.0, device=device, **said)
    with database.writing() as connection:
        processes.heartbeat(connection, one)
    return one


def claim(database: Database, one: Executor, kind: Kind = "validation") -> Job | None:
    with database.writing() as connection:
        return queue.claim(connection, one, kind)


def claimed(database: Database, one: Executor, kind: Kind = "validation") -> str | None:
    found = claim(database, one, kind)
    return None if found is None else found.id
