"""Old rows are deleted; what a release or the working copy needs stays."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, func, insert, select, update

from importer.errors import ServiceError
from importer.storage import documents, jobs, retention, tables
from importer.storage.database import Database
from importer.storage.documents import Version
from importer.storage.retention import Limits
from tests.postgres import postgres
from tests.service.test_jobs_store import at_once
from tests.storing import ON_BOTH, asked, claim, database, empty, worker

__all__ = ["database", "empty", "postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
ROOT = Path(__file__).parents[2]
NONE = Limits()
OLD = "2020-01-01T00:00:00+00:00"
LISTED = {
    "model": "org/m", "revision": None, "backend": "vllm", "family": None, "kind": "chat", "review": "draft",
    "validation": "never", "reason": None, "release": None, "description": "", "license": None, "tags": None,
    "attention": None, "checked_at": None, "links": "{}", "shown": "{}", "shown_by": "1",
}  # fmt: skip


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


def with_versions(database: Database, name: str, count: int) -> None:
    """A document with versions of a receipt of their own; all receipts share a long piece."""
    shared = json.dumps({"evidence": ["e" * 3000]}, indent=1)[:-2]
    for one in range(1, count + 1):
        receipt = f'{shared},\n "validation": {json.dumps([f"{name} {one}" * 300])}\n}}'
        row = Version(
            name, one, "edit", f"name: {name}\n", "{}", receipt, None, "d", "draft", "ann", OLD, None
        )
        with database.writing() as connection:
            documents.add(connection, row, LISTED)


def kept(database: Database, name: str) -> list[int]:
    with database.reading() as connection:
        return [one.number for one in documents.history(connection, name)]


def test_without_a_limit_all_stays(database: Database) -> None:
    ended(database, list_of=3)
    with_versions(database, "m", 4)
    aged(database, tables.jobs, ended_at=OLD)
    before = [number(database, table) for table in (tables.jobs, tables.events, tables.versions)]
    assert set(retention.run(database, NONE).values()) == {0}
    assert [number(database, table) for table in (tables.jobs, tables.events, tables.versions)] == before


def test_old_jobs_go_with_their_lists_and_events_and_open_ones_stay(database: Database) -> None:
    gone, alone = ended(database, list_of=3), ended(database)
    aged(database, tables.jobs, ended_at=OLD)
    recent, waiting = ended(database), asked(database, "import")
    assert retention.run(database, replace(NONE, jobs=30))["jobs"] == 5
    with database.reading() as connection:
        for ident in (gone.id, alone.id):
            with pytest.raises(ServiceError):
                jobs.get(connection, ident)
        assert jobs.events(connection, recent, 0, 99)
        assert jobs.get(connection, waiting.id).state == "queued"
        roots = set(connection.execute(select(tables.events.c.root)).scalars())
    assert roots == {recent.id, waiting.id}


@ON_BOTH
def test_versions_go_but_the_working_copy_s_the_one_that_is_served_and_the_one_it_was_rolled_back_from(
    database: Database,
) -> None:
    with_versions(database, "m", 8)
    with_versions(database, "other", 1)
    with database.writing() as connection:
        pointer = {"version": 2, "left": 4, "digest": "d", "by": "ann", "at": OLD}
        shown = {"item": "", "file": "", "about": "{}"}
        connection.execute(insert(tables.published).values(name="m", **pointer, **shown))
    assert retention.run(database, replace(NONE, versions=2))["versions"] == 4
    assert kept(database, "m") == [8, 7, 4, 2]
    assert retention.run(database, replace(NONE, versions=1))["versions"] == 0  # two stay in any case
    assert kept(database, "other") == [1]
    assert number(database, tables.receipts) == 5
    with database.reading() as connection:
        for name in ("m", "other"):
            assert documents.newest(connection, name).receipt
        assert documents.version(connection, "m", 2).receipt  # type: ignore[union-attr]
        pieces = {
            piece
            for order in connection.execute(select(tables.receipts.c.pieces)).scalars()
            for piece in json.loads(order)
        }
        assert set(connection.execute(select(tables.pieces.c.hash)).scalars()) == pieces


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
    limits = replace(NONE, jobs=1)
    assert retention.run(database, limits, lambda: next(looks))["jobs"] == 2
    assert retention.run(database, limits)["jobs"] == 3


KILLED = """
import os, signal, sys
from importer.storage import retention
from importer.storage.database import Database
from importer.storage.retention import Limits
kind, when, calls = sys.argv[2], sys.argv[3], [0]
retention.BATCH = 2
real = retention.WORK[kind]
def deadly(connection, limit):
    found = real(connection, limit)
    calls[0] += 1
    if calls[0] == 2 or when == "first":
        os.kill(os.getpid(), signal.SIGKILL)
    return found
retention.WORK = {**retention.WORK, kind: deadly}
retention.run(Database(sys.argv[1]), Limits(1, 2, 1))
"""


@pytest.mark.parametrize("when", ["first", "second"])
@pytest.mark.parametrize("kind", ["jobs", "versions"])
def test_a_run_that_is_killed_deletes_a_batch_or_nothing_of_it(
    database: Database, kind: str, when: str
) -> None:
    """The process dies in the transaction of its first or second batch of a kind."""
    for _ in range(3):
        ended(database, list_of=2)
    with_versions(database, "m", 7)
    table = {"jobs": tables.jobs, "versions": tables.versions}[kind]
    aged(database, tables.jobs, ended_at=OLD)
    before = number(database, table)
    url = database.url.render_as_string(hide_password=False).replace("+psycopg", "")
    died = subprocess.run([sys.executable, "-c", KILLED, url, kind, when], check=False, cwd=ROOT)
    left = number(database, table)
    assert died.returncode == -signal.SIGKILL
    batch = {"jobs": 2 * 3, "versions": 2}[kind]
    assert left == before - (batch if when == "second" else 0)
    with database.reading() as connection:
        hashes = connection.execute(select(tables.versions.c.receipt_hash)).scalars().all()
        assert len(documents.receipt_texts(connection, hashes)) == len(hashes)
        roots = set(connection.execute(select(tables.jobs.c.id)).scalars())
        assert set(connection.execute(select(tables.events.c.root)).scalars()) <= roots
    retention.run(database, Limits(1, 2, 1))
    assert number(database, tables.jobs) == number(database, tables.events) == 0
    assert kept(database, "m") == [7, 6]
    assert number(database, tables.receipts) == 2
