"""Jobs that ended long ago are deleted with all that is theirs; open ones stay."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, func, select, update

from importer.errors import ServiceError
from importer.storage import jobs, retention, tables
from importer.storage.database import Database
from tests.service.test_jobs_store import at_once
from tests.storing import ON_BOTH, asked, claim, database, empty, worker

__all__ = ["database", "empty"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
ROOT = Path(__file__).parents[2]
OLD = "2020-01-01T00:00:00+00:00"


def number(database: Database, table: Table) -> int:
    with database.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def ended(database: Database, *, list_of: int = 0) -> jobs.Job:
    """A job that has ended, or a list with all its jobs."""
    one = worker(database, f"w{number(database, tables.executors)}")
    root = asked(database, "imports" if list_of else "import")
    with database.writing() as connection:
        for place in range(1, list_of + 1):
            jobs.create(connection, "import", {}, "ann", root=root, place=place)
    for _ in range(list_of or 1):
        job = claim(database, one, "import")
        assert job is not None
        with database.writing() as connection:
            assert jobs.begin(connection, job, "resolve")
            assert jobs.end(connection, job, "succeeded", result={})
    return root


def aged(database: Database, table: Table, **values: Any) -> None:
    with database.writing() as connection:
        connection.execute(update(table).values(**values))


def test_without_a_limit_all_stays(database: Database) -> None:
    ended(database, list_of=3)
    aged(database, tables.jobs, ended_at=OLD)
    before = [number(database, table) for table in (tables.jobs, tables.events)]
    assert retention.run(database, 0) == 0
    assert [number(database, table) for table in (tables.jobs, tables.events)] == before


def test_old_jobs_go_with_their_lists_and_events_and_open_ones_stay(database: Database) -> None:
    gone, alone = ended(database, list_of=3), ended(database)
    aged(database, tables.jobs, ended_at=OLD)
    recent, waiting = ended(database), asked(database, "import")
    assert retention.run(database, 30) == 5
    with database.reading() as connection:
        for ident in (gone.id, alone.id):
            with pytest.raises(ServiceError):
                jobs.get(connection, ident)
        assert jobs.events(connection, recent, 0, 99)
        assert jobs.get(connection, waiting.id).state == "queued"
        roots = set(connection.execute(select(tables.events.c.root)).scalars())
    assert roots == {recent.id, waiting.id}


@ON_BOTH
def test_one_process_of_many_runs_it(database: Database) -> None:
    def mine(_: int) -> bool:
        with database.writing() as connection:
            return retention.due(connection)

    assert sum(at_once(mine)) == 1


def test_a_run_that_ends_early_goes_on_with_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    for _ in range(5):
        ended(database)
    aged(database, tables.jobs, ended_at=OLD)
    looks = chain([False], repeat(True))
    assert retention.run(database, 1, lambda: next(looks)) == 2
    assert retention.run(database, 1) == 3


KILLED = """
import os, signal, sys
from importer.storage import retention
from importer.storage.database import Database
when, calls = sys.argv[2], [0]
retention.BATCH = 2
real = retention._batch
def deadly(connection, before):
    found = real(connection, before)
    calls[0] += 1
    if calls[0] == 2 or when == "first":
        os.kill(os.getpid(), signal.SIGKILL)
    return found
retention._batch = deadly
retention.run(Database(sys.argv[1]), 1)
"""


@pytest.mark.parametrize("when", ["first", "second"])
def test_a_run_that_is_killed_deletes_a_batch_or_nothing_of_it(database: Database, when: str) -> None:
    """The process dies in the transaction of its first or second batch."""
    for _ in range(3):
        ended(database, list_of=2)
    aged(database, tables.jobs, ended_at=OLD)
    before = number(database, tables.jobs)
    url = database.url.render_as_string(hide_password=False).replace("+psycopg", "")
    died = subprocess.run([sys.executable, "-c", KILLED, url, when], check=False, cwd=ROOT)
    assert died.returncode == -signal.SIGKILL
    assert number(database, tables.jobs) == before - (2 * 3 if when == "second" else 0)
    with database.reading() as connection:
        roots = set(connection.execute(select(tables.jobs.c.id)).scalars())
        assert set(connection.execute(select(tables.events.c.root)).scalars()) <= roots
    retention.run(database, 1)
    assert number(database, tables.jobs) == number(database, tables.events) == 0
