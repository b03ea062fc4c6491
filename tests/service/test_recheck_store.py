"""Rechecked documents as rows, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import select, update

from importer.service.settings import Settings
from importer.storage import documents, jobs, rechecks, retention, tables
from importer.storage.database import Database
from importer.storage.documents import Filters
from importer.storage.rechecks import ask
from tests.service.test_jobs_store import database, empty, postgres
from tests.service.test_retention import with_versions

__all__ = ["database", "empty", "postgres"]
NOW = datetime.now(UTC).isoformat(timespec="seconds")
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


def test_what_was_kept_long_enough_is_deleted(database: Database) -> None:
    with_versions(database, "served", 1)
    with_versions(database, "gone", 2)
    with database.writing() as connection:
        changed = update(tables.configs).where(tables.configs.c.name == "gone")
        connection.execute(changed.values(deleted_at=NOW))
    with database.writing() as connection:
        job = ask(connection, ["served"], {}, "ann")
        rechecks.record(connection, job.id, "served", "differs", 1, FOUND)
        jobs.end(connection, job, "succeeded", result={})
    forever = Settings(keep_deleted_days=0)
    deleted = select(tables.configs.c.name).where(tables.configs.c.deleted_at.is_not(None))
    for settings in (forever, Settings()):
        retention.run(database, settings.limits)
        with database.reading() as connection:
            assert [*connection.scalars(deleted)] == ["gone"]
            assert rechecks.last(connection, "served") is not None
    with database.writing() as connection:
        connection.execute(changed.values(deleted_at="2020"))
        connection.execute(update(tables.jobs).values(ended_at="2020"))
    retention.run(database, Settings().limits)
    with database.reading() as connection:
        assert not [*connection.scalars(deleted)]
        assert documents.history(connection, "gone") == []
        assert documents.history(connection, "served") != []
        found = rechecks.last(connection, "served")  # the document shows it, without its job
        assert found is not None
        assert found.found == FOUND
        assert documents.names(connection, Filters(attention=("differs",))) == ["served"]
    with database.writing() as connection:
        job = ask(connection, ["served"], {}, "ann")
        rechecks.record(connection, job.id, "served", "unchanged", 1)
        jobs.end(connection, job, "succeeded", result={})
        connection.execute(update(tables.jobs).values(ended_at="2020"))
    retention.run(database, Settings().limits)
    with database.reading() as connection:
        assert connection.execute(select(tables.rechecks)).all() == []
