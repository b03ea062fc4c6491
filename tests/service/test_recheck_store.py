"""Rechecked documents as rows, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from importer.storage import documents, jobs, rechecks, retention, tables
from importer.storage.database import Database
from importer.storage.documents import Filters
from importer.storage.rechecks import ask
from tests.service.test_jobs_store import database, empty, postgres

__all__ = ["database", "empty", "postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
FOUND = {"changes": [{"path": "parameters.temperature", "after": "é"}]}


def with_document(database: Database, name: str) -> None:
    with database.writing() as connection:
        row = {"name": name, "version": 1, "digest": "d", "state": "draft", "review": "draft", "search": ""}
        row |= {"validation": "never", "created_at": "x", "updated_at": "x"}
        row |= {"links": "{}", "row": "", "shown": "", "shown_by": ""}
        connection.execute(tables.configs.insert().values(row))


def test_a_document_has_its_last_comparison(database: Database) -> None:
    with_document(database, "a")
    with database.writing() as connection:
        first = ask(connection, ["a", "b"], {}, "ann")
        assert rechecks.waiting(connection, first.id, 9) == ["a", "b"]
        rechecks.record(connection, first.id, "a", "differs", 1, FOUND)
        rechecks.record(connection, first.id, "b", "gone")
        assert rechecks.outcomes(connection, first.id) == {"differs": 1, "gone": 1}
        [found] = rechecks.page(connection, first.id, 9, outcome="differs")
        assert (found, found.found) == (rechecks.last(connection, "a"), FOUND)
        assert documents.total(connection, Filters(attention=("differs",))) == 1
        second = ask(connection, ["a"], {}, "ann")
        assert rechecks.last(connection, "a") == found  # the second one has not compared it
        rechecks.record(connection, second.id, "a", "left-out", 1)
        assert documents.total(connection, Filters(attention=("differs",))) == 1
        assert rechecks.last(connection, "a") == found
        rechecks.record(connection, second.id, "a", "unchanged", 1)
        assert rechecks.last(connection, "a") is None
        assert documents.total(connection, Filters(attention=("differs",))) == 0


def test_the_rows_of_old_rechecks_go_but_the_one_that_a_document_shows(database: Database) -> None:
    with_document(database, "served")

    def old(outcome: rechecks.Outcome) -> None:
        with database.writing() as connection:
            job = ask(connection, ["served"], {}, "ann")
            rechecks.record(connection, job.id, "served", outcome, 1, FOUND)
            jobs.end(connection, job, "succeeded", result={})
            connection.execute(update(tables.jobs).values(ended_at="2020"))
        assert retention.run(database, 90) == 1

    old("differs")
    with database.reading() as connection:
        found = rechecks.last(connection, "served")
        assert found is not None
        assert found.found == FOUND
        assert documents.names(connection, Filters(attention=("differs",))) == ["served"]
    old("unchanged")
    with database.reading() as connection:
        assert connection.execute(select(tables.rechecks)).all() == []
