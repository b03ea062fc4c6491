"""What a recheck found, as a row of the document, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from importer.storage import documents, rechecks, tables
from importer.storage.database import Database
from importer.storage.documents import Filters
from tests.service.test_jobs_store import database, empty

__all__ = ["database", "empty"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
FOUND = {"changes": [{"path": "parameters.temperature", "after": "é"}]}


def test_a_document_has_its_last_difference(database: Database) -> None:
    with database.writing() as connection:
        row = {"name": "a", "version": 1, "digest": "d", "state": "draft", "review": "draft", "search": ""}
        row |= {"validation": "never", "created_at": "x", "updated_at": "x"}
        row |= {"links": "{}", "row": "", "shown": "", "shown_by": ""}
        connection.execute(tables.configs.insert().values(row))
        differing = Filters(attention=("differs",))
        for job in ("first", "second"):
            rechecks.record(connection, job, "a", 1, FOUND)
            found = rechecks.last(connection, "a")
            assert found is not None
            assert (found.job, found.version, found.found) == (job, 1, FOUND)
            assert documents.total(connection, differing) == 1
        connection.execute(update(tables.configs).values(version=2))
        rechecks.record(connection, "third", "a", 1, None)  # of an older version
        assert rechecks.last(connection, "a") == found
        rechecks.record(connection, "fourth", "a", 2, None)
        assert rechecks.last(connection, "a") is None
        assert connection.execute(select(tables.rechecks)).all() == []
        assert documents.total(connection, differing) == 0
