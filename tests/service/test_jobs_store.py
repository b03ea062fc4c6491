"""Jobs as rows, on SQLite and on a real PostgreSQL: tables, claims, ends and events of many at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from importer.service.domain import validations
from importer.service.domain.validations import ValidationOrder
from importer.storage import jobs, processes, queue, schema, tables
from importer.storage.database import Database
from importer.storage.processes import Executor, LeaseMonitor
from importer.storage.schema import prepare
from tests.storing import ON_BOTH, asked, claim, claimed, database, empty, worker

__all__ = ["database", "empty"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
MANY = 8  # threads


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What many threads give that begin together."""
    start = Barrier(MANY)

    def one(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(MANY) as pool:
        return [*pool.map(one, range(MANY))]


def test_the_tables_are_what_queries_see(database: Database) -> None:
    found = inspect(database.engine)
    for table in tables.METADATA.sorted_tables:
        assert {c["name"] for c in found.get_columns(table.name)} == {*table.columns.keys()}, table.name
        assert found.get_pk_constraint(table.name)["constrained_columns"] == [
            c.name for c in table.primary_key
        ]
    assert not prepare(database)


def test_tables_that_cannot_be_made_leave_nothing(empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "ROWS", ("CREATE TABLE broken (",))
    with pytest.raises(DBAPIError):
        prepare(empty)
    assert inspect(empty.engine).get_table_names() == []


@ON_BOTH
def test_many_begin_at_once_on_an_empty_database(empty: Database) -> None:
    url = empty.url.render_as_string(hide_password=False)

    def begin(_: int) -> bool:
        mine = Database(url)
        try:
            return prepare(mine)
        finally:
            mine.close()

    assert at_once(begin).count(True) == 1
    with empty.reading() as connection:
        assert [*connection.execute(text("SELECT number FROM migrations")).scalars()] == [schema.VERSION]


@ON_BOTH
def test_two_processes_never_claim_the_same_and_each_takes_the_oldest(database: Database) -> None:
    workers = [worker(database, f"w{n}", f"host/{n}") for n in range(MANY)]
    for kind in ("validation", "import"):
        waiting = [asked(database, kind, engine="mlx").id for _ in range(MANY + 2)]
        found = at_once(lambda number, kind=kind: claimed(database, workers[number], kind))
        # In PostgreSQL a job whose claim is not committed yet is skipped, so that nobody waits for it.
        assert sorted(found) == waiting[:MANY]


def test_a_device_has_one_at_a_time_whoever_claims_for_it(database: Database) -> None:
    workers = [worker(database, f"w{n}", "host/gpu") for n in range(MANY)]
    waiting = [asked(database, "validation", engine="mlx").id for _ in range(3)]
    found = at_once(lambda number: claim(database, workers[number]))
    [first] = [job for job in found if job is not None]
    assert first.id == waiting[0]
    with database.writing() as connection:
        assert jobs.end(connection, first, "succeeded")
    assert claimed(database, workers[0]) == waiting[1]


def test_a_job_goes_to_whom_has_the_engine_and_the_memory(database: Database) -> None:
    large = asked(database, "validation", engine="vllm", memory=10 << 30)
    small = asked(database, "validation", engine="mlx", memory=1 << 30)

    def taken(name: str, *engines: str, memory: int) -> str | None:
        one = worker(database, name, f"host/{name}", engines=engines, memory=memory)
        with database.reading() as connection:
            open_ones = [j for j in (large, small) if jobs.get(connection, j.id).executor is None]
        fits = [job.id for job in open_ones if one.can(job.engine, job.memory)]
        found = claimed(database, one)
        assert found == next(iter(fits), None)  # what requests are told is what the queue does
        return found

    assert taken("a", "vllm", memory=8 << 30) is None
    assert taken("b", "vllm", "mlx", memory=8 << 30) == small.id
    assert taken("c", "vllm", memory=16 << 30) == large.id


def test_a_job_whose_process_is_gone_goes_on_at_the_first_step_that_is_not_recorded(
    database: Database,
) -> None:
    asked(database, "import")
    first, second = worker(database, "a"), worker(database, "b")
    job = claim(database, first, "import")
    assert job is not None
    with database.writing() as connection:
        assert jobs.begin(connection, job, "resolve")
        assert queue.record(connection, job, "resolve", {"commit": "abc"})
        assert jobs.begin(connection, job, "decide")
    assert claim(database, second, "import") is None
    with database.writing() as connection:
        assert queue.release(connection, ["a"], keep=[job.id]) == 0
        assert queue.release(connection, ["a"]) == 1
    other = claim(database, second, "import")
    assert other is not None
    assert (other.id, other.attempt, other.claims) == (job.id, 1, 2)
    with database.writing() as connection:
        assert queue.results(connection, other) == {"resolve": {"commit": "abc"}}
        assert queue.lost(connection, [job, other]) == [job.id]
        # Whoever was only slow finds out, and writes nothing.
        assert not jobs.begin(connection, job, "prove")
        assert not queue.record(connection, job, "decide", {})
        assert not jobs.end(connection, job, "succeeded")
        assert jobs.end(connection, other, "succeeded")
        assert queue.results(connection, other) == {}
        assert queue.lost(connection, [other]) == [other.id]


def test_a_process_whose_job_came_back_to_itself_holds_it_once(database: Database) -> None:
    asked(database, "import")
    one = worker(database, "a")
    slow = claim(database, one, "import")
    with database.writing() as connection:
        queue.release(connection, ["a"])
    again = claim(database, one, "import")
    assert slow is not None
    assert again is not None
    with database.writing() as connection:
        assert not jobs.begin(connection, slow, "resolve")
        assert jobs.begin(connection, again, "resolve")


def test_who_was_taken_for_dead_claims_nothing_until_its_next_heartbeat(database: Database) -> None:
    job = asked(database, "import")
    one = worker(database, "a")
    with database.writing() as connection:
        processes.remove(connection, ["a"])
    assert claim(database, one, "import") is None
    assert claimed(database, worker(database, "a"), "import") == job.id


def test_a_job_that_kills_its_processes_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MAX_CLAIMS", 3)
    job = asked(database, "import")
    one = worker(database, "a")
    for _ in range(3):
        with database.writing() as connection:
            assert queue.exhausted(connection) == []
        assert claimed(database, one, "import") == job.id
        with database.writing() as connection:
            queue.release(connection, ["a"])
    assert claim(database, one, "import") is None
    with database.writing() as connection:
        [found] = queue.exhausted(connection)
        assert jobs.end(connection, found, "failed", error={"kind": "gave-up"})
        jobs.again(connection, jobs.get(connection, job.id), {})
    assert claimed(database, one, "import") == job.id  # a person has tried it again


def test_a_job_of_another_version_waits_for_it_until_it_is_gone(database: Database) -> None:
    job = asked(database, "import")
    old, new = worker(database, "a"), worker(database, "b", version="3")
    begun = claim(database, old, "import")
    assert begun is not None
    with database.writing() as connection:
        assert queue.record(connection, begun, "resolve", {})
        queue.release(connection, ["a"])
        assert queue.outdated(connection, ["2", "3"]) == []
    assert claim(database, new, "import") is None
    with database.writing() as connection:
        [left] = queue.outdated(connection, ["3"])
        assert queue.restart(connection, left, "version 2 of its workflow is gone")
    again = claim(database, new, "import")
    assert again is not None
    assert (again.id, again.attempt, again.version) == (job.id, 2, "3")
    with database.reading() as connection:
        assert queue.results(connection, again) == {}


def test_a_device_that_comes_back_has_its_job_first_and_one_that_is_gone_loses_it(database: Database) -> None:
    for _ in range(2):
        asked(database, "validation", engine="mlx")
    first, second = worker(database, "a", "host/a"), worker(database, "b", "host/b")
    begun = [claim(database, one) for one in (first, second)]
    assert begun[0] is not None
    with database.writing() as connection:
        assert jobs.begin(connection, begun[0], "weights")
        queue.release(connection, ["a"])
        assert queue.orphaned(connection, ["host/a", "host/b"]) == []
    assert claim(database, worker(database, "c", "host/c")) is None  # it is another device's
    back = claim(database, worker(database, "a2", "host/a"))
    assert back is not None
    assert (back.id, back.attempt) == (begun[0].id, 1)
    with database.writing() as connection:
        queue.release(connection, ["a2"])
        [left] = queue.orphaned(connection, ["host/b", "host/c"])
        assert queue.restart(connection, left, "host/a is gone")
    other = claim(database, worker(database, "c", "host/c"))
    assert other is not None
    assert (other.id, other.attempt, other.device) == (begun[0].id, 2, "host/c")


def test_a_cancel_ends_a_job_whoever_claims_it_meanwhile(database: Database) -> None:
    asked(database, "import")
    one = worker(database, "a")
    with database.reading() as connection:
        [seen] = jobs.page(connection, 9)
    held = claim(database, one, "import")
    assert held is not None
    with database.writing() as connection:
        assert [job.id for job in jobs.cancel(connection, seen)] == [held.id]
        assert not jobs.end(connection, held, "succeeded")
        assert jobs.get(connection, held.id).executor is None


@ON_BOTH
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


@ON_BOTH
def test_a_list_is_cancelled_while_its_jobs_go_on(database: Database) -> None:
    root = asked(database, "imports")
    inside = [asked(database, "import", root=root, place=n) for n in range(MANY - 1)]
    one = worker(database, "a")
    held = [claim(database, one, "import") for _ in inside]

    def work(number: int) -> None:
        for _ in range(20):
            with database.writing() as connection:
                if number == MANY - 1:
                    jobs.cancel(connection, root)
                elif (job := held[number]) is not None:
                    jobs.begin(connection, job, "resolve")

    at_once(work)  # none waits for a row that the other holds
    with database.reading() as connection:
        assert jobs.get(connection, root.id).state == "cancelled"
        assert jobs.counts(connection, root.id) == {"cancelled": MANY - 1}


def test_a_list_with_a_failed_job_ends_as_what_ended_it(database: Database) -> None:
    for whole, state in ((True, "cancelled"), (False, "failed")):
        root = asked(database, "imports")
        broken, left = (asked(database, "import", root=root, place=n) for n in range(2))
        one = worker(database, "a")
        held = [claim(database, one, "import") for _ in range(2)]
        with database.writing() as connection:
            failed = next(job for job in held if job is not None and job.id == broken.id)
            assert jobs.end(connection, failed, "failed", error={"kind": "bad-json"})
            assert [job.id for job in jobs.cancel(connection, root if whole else left)] == [left.id]
            assert jobs.get(connection, root.id).state == state
            assert jobs.counts(connection, root.id) == {"failed": 1, "cancelled": 1}


def test_a_question_waits_until_it_is_answered_or_cancelled(database: Database) -> None:
    """The state of such a job, of its list, and the counts of all jobs."""
    root = asked(database, "imports")
    asks, other = (asked(database, "import", root=root, place=n) for n in range(2))
    one = worker(database, "a")
    held = {job.id: job for _ in range(2) if (job := claim(database, one, "import")) is not None}
    question: jobs.Failure = {"kind": "ambiguous", "detail": "?", "hint": "!", "candidates": [{}]}
    with database.writing() as connection:
        assert jobs.fail(connection, held[asks.id], question)
        assert jobs.get(connection, root.id).state == "queued"
        assert jobs.end(connection, held[other.id], "succeeded")
        assert jobs.get(connection, root.id).state == "waiting"
        assert jobs.summary(connection)["waiting"] == 1
        answered = jobs.again(connection, jobs.get(connection, asks.id), {"backend": "mlx"})
        assert (answered.state, answered.attempt, answered.error) == ("queued", 2, None)
    again = claim(database, one, "import")
    assert again is not None
    with database.writing() as connection:
        assert jobs.fail(connection, again, {**question, "candidates": []})
        assert [job.id for job in jobs.cancel(connection, jobs.get(connection, asks.id))] == [asks.id]
        assert jobs.get(connection, root.id).state == "cancelled"
        summary = jobs.summary(connection)
        assert (summary["waiting"], summary["failed"]) == (0, 0)


def test_another_attempt_is_begun_once(database: Database) -> None:
    job = asked(database, "import")

    def begin(_: int) -> bool:
        with database.writing() as connection:
            return queue.restart(connection, job, "its version is gone")

    assert at_once(begin).count(True) == 1


def test_a_process_that_was_taken_for_dead_finds_that_out(database: Database) -> None:
    one = Executor("vm-1-2", "here", "vm", 1, "", 0.0, device="vm/gpu", engines=("mlx",), version="1")
    with database.writing() as connection:
        assert processes.heartbeat(connection, one)
        assert not processes.heartbeat(connection, one)
        assert [(x.id, x.device, x.version) for x in processes.all_executors(connection)] == [
            ("vm-1-2", "vm/gpu", "1")
        ]
        processes.remove(connection, [one.id])
        assert processes.heartbeat(connection, one)


def test_a_lease_expires_by_the_clock_of_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, step = [0.0], processes.LEASE * 0.6
    monkeypatch.setattr(processes.time, "monotonic", lambda: clock[0])
    one = Executor("vm-1-2", "here", "vm", 1, "", seen=-5000.0)  # its clock is an hour behind
    monitor = LeaseMonitor()
    for _ in range(4):  # its heart beats
        one = replace(one, seen=one.seen + step)
        assert monitor.expired([one]) == set()
        clock[0] += step
    assert monitor.expired([one]) == set()
    clock[0] += step
    assert monitor.expired([one]) == {one.id}
    assert monitor.expired([replace(one, seen=0.0)]) == set()
    clock[0] += 2 * step  # who looks was away itself
    assert monitor.expired([replace(one, seen=0.0)]) == set()


def test_a_validation_that_waits_tells_what_is_missing(database: Database) -> None:
    def said(name: str) -> str | None:
        wanted = ValidationOrder(name, "sha256:0", "mlx", "mlx", 8 * 2**30, fetch=True)
        with database.writing() as connection:
            return validations.ask(connection, wanted, "ann")[0].says

    assert "install mlx" in str(said("alone"))
    worker(database, "small", "gpu", memory=2**30)
    assert "8.0 GiB" in str(said("large"))
    worker(database, "big", "gpu-2", memory=2**34)
    assert said("able") is None
