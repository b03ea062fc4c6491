"""The queue is fair by caller and by list, and single jobs come first; on SQLite and PostgreSQL."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from importer.storage import jobs, queue, retention, tables
from importer.storage.database import Database
from importer.storage.jobs import Job
from importer.storage.processes import Executor
from tests.service.test_jobs_store import at_once
from tests.storing import ON_BOTH, asked, claim, database, empty, worker

__all__ = ["database", "empty"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]


def listed(database: Database, by: str, size: int) -> Job:
    """A list of one caller with its jobs."""
    root = asked(database, "imports", by)
    with database.writing() as connection:
        for place in range(1, size + 1):
            jobs.create(connection, "import", {}, by, root=root, place=place)
    return root


def order(database: Database, one: Executor, number: int) -> list[Job]:
    """The next jobs in the order of their claims, each ended at once."""
    found = []
    for _ in range(number):
        job = claim(database, one, "import")
        if job is None:
            break
        with database.writing() as connection:
            jobs.end(connection, job, "succeeded", result={})
        found.append(job)
    return found


def test_a_single_import_does_not_wait_for_a_list(database: Database) -> None:
    one = worker(database, "a")
    long = listed(database, "ann", 30)
    assert [job.place for job in order(database, one, 3)] == [1, 2, 3]
    mine, other = asked(database, "import", "ann"), asked(database, "import", "bob")
    assert {job.id for job in order(database, one, 2)} == {mine.id, other.id}
    assert [job.root for job in order(database, one, 99)] == [long.id] * 27


def test_callers_share_and_a_caller_s_lists_share_the_caller_s_part(database: Database) -> None:
    one = worker(database, "a")
    lists = {name: listed(database, by, 20).id for name, by in (("a1", "ann"), ("a2", "ann"), ("b", "bob"))}
    first = order(database, one, 24)
    assert Counter(job.root for job in first) == {lists["a1"]: 6, lists["a2"]: 6, lists["b"]: 12}
    assert all(before.by != after.by for before, after in pairwise(first))
    for ident in lists.values():
        places = [job.place for job in first if job.root == ident]
        assert places == [*range(1, len(places) + 1)]
    assert len(order(database, one, 99)) == 36


def test_single_imports_starve_no_list(database: Database) -> None:
    one = worker(database, "a")
    long = listed(database, "ann", 5)
    for number in range(20):
        asked(database, "import", ("bob", "eve")[number % 2])
    first = order(database, one, 20)
    assert [number for number, job in enumerate(first) if job.root == long.id] == [3, 7, 11, 15, 19]
    singles = [job.by for job in first if job.root != long.id]
    assert all(before != after for before, after in pairwise(singles))


def test_who_was_away_has_one_turn_and_not_all_that_were_missed(database: Database) -> None:
    one = worker(database, "a")
    listed(database, "ann", 30)
    order(database, one, 20)
    listed(database, "bob", 10)
    assert [job.by for job in order(database, one, 6)] == ["bob", "ann"] * 3


def test_a_begun_job_of_a_dead_process_comes_first(database: Database) -> None:
    one, other = worker(database, "a"), worker(database, "b")
    listed(database, "ann", 3)
    begun = claim(database, one, "import")
    assert begun is not None
    with database.writing() as connection:
        assert jobs.begin(connection, begun, "resolve")
        assert queue.release(connection, ["a"]) == 1
    asked(database, "import", "bob")
    again = claim(database, other, "import")
    assert again is not None
    assert again.id == begun.id


@ON_BOTH
def test_many_processes_claim_each_job_once(database: Database) -> None:
    listed(database, "ann", 20)
    listed(database, "bob", 20)
    workers = [worker(database, f"w{number}") for number in range(8)]
    found = at_once(lambda number: [claim(database, workers[number], "import") for _ in range(6)])
    idents = [job.id for some in found for job in some if job is not None]
    assert len(idents) == len(set(idents)) == 40


def test_the_turns_of_ended_lists_are_forgotten(database: Database) -> None:
    one = worker(database, "a")
    listed(database, "ann", 2)
    left = listed(database, "ann", 2)
    order(database, one, 3)
    retention.run(database, 0)
    with database.reading() as connection:
        rows = connection.execute(tables.turns.select().where(queue.T.lane == queue.LISTS)).all()
    assert [row.flow for row in rows] == [left.id]
