"""Findings and schedules as rows, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import update

from importer.service.domain import upkeep
from importer.service.domain.upkeep import begin_due
from importer.service.settings import Settings
from importer.storage import documents, findings, jobs, processes, retention, tables
from importer.storage.database import Database
from importer.storage.findings import FindingFilter
from tests.service.test_jobs_store import at_once, database, empty, postgres
from tests.service.test_retention import with_versions

__all__ = ["database", "empty", "postgres"]
NOW = datetime.now(UTC).isoformat(timespec="seconds")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
SUMMARY: dict[str, Any] = {
    "model": "acme/base", "causes": [], "decisions": [], "document": [], "conflicts": [], "refused": None,
}  # fmt: skip


def recorded(database: Database, name: str, mark: str, version: int = 1) -> tuple[str | None, str]:
    with database.writing() as connection:
        return findings.record(
            connection, name, version, mark, ["commit", "weights"], SUMMARY, {"any": {"text": "é" * 9}}, "job"
        )


def open_ones(database: Database, **filters: Any) -> list[str]:
    with database.reading() as connection:
        return [one.id for one in findings.page(connection, FindingFilter(("open",), **filters), 99)]


def test_a_finding_is_shown_once_and_a_rejected_one_stays_so(database: Database) -> None:
    first, outcome = recorded(database, "a", "one")
    assert outcome == "found"
    assert recorded(database, "a", "one", 2) == (first, "known")
    assert first is not None
    with database.writing() as connection:
        refreshed = findings.get(connection, first)
        assert refreshed is not None
        assert refreshed.version == 2
        assert findings.proposals(connection, first) == {"any": {"text": "é" * 9}}
        assert findings.decide(connection, first, "rejected", "ann", "no")
        assert not findings.decide(connection, first, "accepted", "ann", None)
    assert recorded(database, "a", "one", 3) == (first, "rejected")
    assert open_ones(database) == []
    second, _ = recorded(database, "a", "two")
    third, _ = recorded(database, "a", "three")
    assert open_ones(database, name="a", cause="weights") == [third]
    assert open_ones(database, cause="weight") == []
    assert recorded(database, "a", "one") == (first, "rejected")  # the change of before is back
    assert open_ones(database) == []
    with database.writing() as connection:
        assert findings.count(connection, FindingFilter(("superseded",))) == 2
        findings.resolve(connection, "a")
        assert findings.purge(connection, "2999-01-01T00:00:00+00:00") == 2
        assert [one.state for one in findings.page(connection, FindingFilter(), 9)] == ["rejected"]
        assert findings.get(connection, str(second)) is None


def test_one_of_many_processes_begins_what_is_due(database: Database) -> None:
    with database.writing() as connection:
        row = {"name": "doc", "version": 1, "digest": "d", "state": "draft", "review": "draft", "search": ""}
        row |= {
            "validation": "never",
            "created_at": "x",
            "updated_at": "x",
            "links": "{}",
            "row": "",
            "shown": "",
            "shown_by": "",
        }
        connection.execute(tables.configs.insert().values(row))
    every = 3600
    assert not any(at_once(lambda _: begin_due(database, every)))  # the first one is not due at once
    with database.reading() as connection:
        planned = processes.last(connection, upkeep.SCHEDULE)
    assert planned is not None
    assert 0.9 * every - 60 < float(str(planned["due"])) - time.time() <= 1.1 * every
    _make_due(database)
    assert at_once(lambda _: begin_due(database, every)).count(True) == 1
    _make_due(database)
    assert not any(at_once(lambda _: begin_due(database, every)))  # the last one has not ended
    with database.reading() as connection:
        [job] = jobs.newest(connection, "recheck", 9)
        assert findings.waiting(connection, job.id, 9) == ["doc"]


def _make_due(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(update(tables.schedules).values(due=0.0))


def test_what_was_kept_long_enough_is_deleted(database: Database) -> None:
    with_versions(database, "served", 1)
    with_versions(database, "gone", 2)
    with database.writing() as connection:
        changed = update(tables.configs).where(tables.configs.c.name == "gone")
        connection.execute(changed.values(deleted_at=NOW))
    ident, _ = recorded(database, "served", "one")
    with database.writing() as connection:
        job = upkeep.ask(connection, ["served"], {}, "ann")
        findings.decide(connection, str(ident), "accepted", "ann", None)
    forever = Settings(keep_deleted_days=0, keep_findings_days=0)
    for settings in (forever, Settings()):
        retention.run(database, settings.limits)
        with database.reading() as connection:
            assert [one["name"] for one in documents.page_deleted(connection, 9)] == ["gone"]
            assert findings.get(connection, str(ident)) is not None
    with database.writing() as connection:
        connection.execute(changed.values(deleted_at="2020"))
        connection.execute(update(tables.findings).values(decided_at="2020"))
        connection.execute(tables.jobs.delete().where(tables.jobs.c.id == job.id))
    retention.run(database, Settings().limits)
    with database.reading() as connection:
        assert documents.count_deleted(connection) == 0
        assert documents.history(connection, "gone") == []
        assert documents.history(connection, "served") != []
        assert findings.get(connection, str(ident)) is None
        assert findings.items(connection, job.id, 9) == []
