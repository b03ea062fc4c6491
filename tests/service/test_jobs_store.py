"""Jobs as rows, on SQLite and on a real PostgreSQL: migrations, claims, ends and events of many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from importer.gallery import executors, jobs, migrations, queue, tables
from importer.gallery.database import CLAIMS, Database
from importer.gallery.executors import Executor
from importer.gallery.jobs import Job
from importer.gallery.migrations import NUMBERED, migrate
from tests.postgres import Postgres, postgres

__all__ = ["postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
MANY = 8  # threads


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables."""
    kept = request.param == "postgresql"
    server: Postgres | None = request.getfixturevalue("postgres") if kept else None
    database = Database(server.fresh() if server else f"sqlite:///{tmp_path / 'gallery.sqlite'}")
    yield database
    database.close()


@pytest.fixture
def database(empty: Database) -> Database:
    migrate(empty)
    return empty


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What many threads give that begin together."""
    start = Barrier(MANY)

    def one(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(MANY) as pool:
        return [*pool.map(one, range(MANY))]


def asked(database: Database, kind: Any, **said: Any) -> Job:
    with database.writing() as connection:
        return jobs.create(connection, kind, {}, "ann", **said)


def claimed(database: Database, device: str, can: queue.Can = lambda *_: True) -> str | None:
    with database.writing() as connection:
        database.alone(connection, CLAIMS)
        found = queue.claim(connection, device, can)
        return None if found is None else found.id


def test_the_tables_are_what_queries_see(database: Database) -> None:
    found = inspect(database.engine)
    for table in tables.METADATA.sorted_tables:
        assert {c["name"] for c in found.get_columns(table.name)} == {*table.columns.keys()}, table.name
        assert found.get_pk_constraint(table.name)["constrained_columns"] == [
            c.name for c in table.primary_key
        ]
    assert migrate(database) == []


def test_a_database_of_any_version_is_brought_up_to_date(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "NUMBERED", {1: NUMBERED[1]})
    assert migrate(empty) == [1]
    job = asked(empty, "import")
    monkeypatch.setattr(migrations, "NUMBERED", NUMBERED)
    assert migrate(empty) == [*NUMBERED][1:]
    with empty.reading() as connection:
        assert jobs.get(connection, job.id).created_at == job.created_at


def test_a_migration_that_fails_leaves_nothing(empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (*migrations.statements(1), "CREATE TABLE broken (")
    monkeypatch.setattr(migrations, "statements", lambda _: broken)
    with pytest.raises(DBAPIError):
        migrate(empty)
    assert inspect(empty.engine).get_table_names() == []


def test_many_begin_at_once_on_an_empty_database(empty: Database) -> None:
    url = empty.url.render_as_string(hide_password=False)

    def begin(_: int) -> list[int]:
        mine = Database(url)
        try:
            return migrate(mine)
        finally:
            mine.close()

    assert max(at_once(begin), key=len) == [*NUMBERED]
    with empty.reading() as connection:
        assert [*connection.execute(text("SELECT number FROM migrations")).scalars()] == [*NUMBERED]


def test_two_devices_never_claim_the_same_and_each_takes_the_oldest(database: Database) -> None:
    waiting = [asked(database, "validation", engine="mlx").id for _ in range(MANY + 2)]
    found = at_once(lambda number: claimed(database, f"host/{number}"))
    assert sorted(found) == waiting[:MANY]


def test_a_device_has_one_at_a_time_whoever_claims_for_it(database: Database) -> None:
    waiting = [asked(database, "validation", engine="mlx") for _ in range(3)]
    found = at_once(lambda _: claimed(database, "host/gpu"))
    assert {*found} == {waiting[0].id}  # claimed, and in no queue yet: whoever comes may put it there
    with database.writing() as connection:
        queue.enqueued(connection, waiting[0])
    assert claimed(database, "host/gpu") is None
    with database.writing() as connection:
        jobs.end(connection, waiting[0], "succeeded")
    assert claimed(database, "host/gpu") == waiting[1].id


def test_a_job_goes_to_whom_has_the_engine_and_the_memory(database: Database) -> None:
    large = asked(database, "validation", engine="vllm", memory=10 << 30).id
    small = asked(database, "validation", engine="mlx", memory=1 << 30).id

    def who(*engines: str, memory: int) -> queue.Can:
        return Executor("x", "", "", 1, "", 0.0, engines=engines, memory=memory).can

    assert claimed(database, "host/a", who("vllm", memory=8 << 30)) is None
    assert claimed(database, "host/b", who("vllm", "mlx", memory=8 << 30)) == small
    assert claimed(database, "host/a", who("vllm", memory=16 << 30)) == large


def test_the_jobs_of_a_device_that_is_gone_are_given_back_in_their_order(database: Database) -> None:
    first, second = (asked(database, "validation", engine="mlx") for _ in range(2))
    assert [claimed(database, f"host/{n}") for n in "ab"] == [first.id, second.id]
    with database.writing() as connection:
        assert jobs.begin(connection, first, "weights")
        assert [job.id for job in queue.release(connection, ["host/b"])] == [first.id]
    with database.writing() as connection:
        assert queue.release(connection, ["host/b"]) == []
        assert not jobs.begin(connection, first, "run")  # whoever had it finds out
        assert not jobs.end(connection, first, "succeeded")
    assert claimed(database, "host/c") == first.id


def test_a_job_ends_once_and_its_events_are_numbered_without_a_gap(database: Database) -> None:
    root = asked(database, "imports")
    inside = [asked(database, "import", root=root, place=n) for n in range(MANY)]

    def work(number: int) -> int:
        with database.writing() as connection:
            jobs.begin(connection, inside[number], "resolve")
        ends = 0
        for other in (number, (number + 1) % MANY):
            with database.writing() as connection:
                ends += jobs.end(connection, inside[other], "succeeded")
        return ends

    assert sum(at_once(work)) == MANY
    with database.reading() as connection:
        said = jobs.events(connection, root, 0, 1000)
        assert jobs.get(connection, root.id).state == "succeeded"
    assert [e["number"] for e in said] == [*range(1, len(said) + 1)]
    assert [e["type"] for e in said].count("succeeded") == MANY + 1
    assert (said[-1]["job"], said[-1]["type"]) == (root.id, "succeeded")


def test_another_attempt_is_begun_once(database: Database) -> None:
    job = asked(database, "import")

    def begin(_: int) -> bool:
        with database.writing() as connection:
            return queue.anew(connection, job, "its version is gone")

    assert at_once(begin).count(True) == 1


def test_a_process_that_was_taken_for_dead_finds_that_out(database: Database) -> None:
    one = Executor("vm-1-2", "here", "vm", 1, "", 0.0, device="vm/gpu", engines=("mlx",), version="1")
    with database.writing() as connection:
        assert executors.sign(connection, one)
        assert not executors.sign(connection, one)
        assert [(x.id, x.device, x.version) for x in executors.everyone(connection)] == [
            ("vm-1-2", "vm/gpu", "1")
        ]
        executors.forget(connection, [one.id])
        assert executors.sign(connection, one)


def test_silence_is_told_by_the_clock_of_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, step = [0.0], executors.LEASE * 0.6
    monkeypatch.setattr(executors.time, "monotonic", lambda: clock[0])
    one = Executor("vm-1-2", "here", "vm", 1, "", seen=-5000.0)  # its clock is an hour behind
    silence = executors.Silence()
    for _ in range(4):  # it gives signs
        one = replace(one, seen=one.seen + step)
        assert silence.of([one]) == set()
        clock[0] += step
    assert silence.of([one]) == set()
    clock[0] += step
    assert silence.of([one]) == {one.id}
    assert silence.of([replace(one, seen=0.0)]) == set()
    clock[0] += 2 * step  # who looks was away itself
    assert silence.of([replace(one, seen=0.0)]) == set()
