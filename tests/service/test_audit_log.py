"""The audit log only grows: no statement alters, replaces or removes an entry; the retention is recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from importer.storage import audit, retention
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.retention import Limits
from tests.postgres import postgres
from tests.storing import ON_BOTH, database, empty

__all__ = ["database", "empty", "postgres"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
COLUMNS = "id, at, who, action, details"
FORGED = "'2026-01-01T00:00:00+00:00', 'mallory', 'approve', '{}'"
OLD = "2020-01-01T00:00:00+00:00"
# On both kinds of database; LAST is the newest id.
REFUSED = (
    "UPDATE audit SET who = 'bob'", "UPDATE audit SET id = id + 100", "UPDATE audit SET until = 10",
    "DELETE FROM audit", "DELETE FROM audit WHERE id = LAST", "DELETE FROM audit WHERE id = 1",
    f"INSERT INTO audit ({COLUMNS}) VALUES (LAST, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (1, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (0, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (-1, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (LAST + 2, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (9223372036854775807, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (1, {FORGED}) ON CONFLICT (id) DO UPDATE SET who = 'bob'",
    f"INSERT INTO audit ({COLUMNS}) SELECT id, at, 'bob', action, details FROM audit",
    f"INSERT INTO audit (at, who, action, details, until) VALUES ({FORGED}, LAST + 1)",
    f"INSERT INTO audit (at, who, action, details, until) VALUES ({FORGED}, 9223372036854775807)",
)  # fmt: skip
OF_SQLITE = (
    f"INSERT OR REPLACE INTO audit ({COLUMNS}) VALUES (LAST, {FORGED})",
    f"INSERT OR REPLACE INTO audit ({COLUMNS}) VALUES (1, {FORGED})",
    f"INSERT OR REPLACE INTO audit ({COLUMNS.replace('id', 'rowid', 1)}) VALUES (2, {FORGED})",
    f"REPLACE INTO audit ({COLUMNS}) VALUES (LAST + 1, {FORGED}), (LAST + 1, {FORGED})",
    f"INSERT OR IGNORE INTO audit ({COLUMNS}) VALUES (LAST + 9, {FORGED})",
    "UPDATE OR REPLACE audit SET id = 1 WHERE id = LAST",
    f"INSERT INTO audit (at, who, action, details, until) VALUES ({FORGED}, 'zzz')",
    f"INSERT INTO audit (at, who, action, details, until) VALUES ({FORGED}, x'ff')",
    f"INSERT INTO audit (at, who, action, details, until) VALUES ({FORGED}, 9e999)",
)
OF_POSTGRES = (
    "TRUNCATE audit",
    "TRUNCATE audit RESTART IDENTITY CASCADE",
    "WITH gone AS (DELETE FROM audit RETURNING id) SELECT count(*) FROM gone",
    f"INSERT INTO audit ({COLUMNS}) OVERRIDING SYSTEM VALUE VALUES (LAST + 7, {FORGED})",
    "MERGE INTO audit USING (SELECT 1) one ON id = 1 WHEN MATCHED THEN DELETE",
)


def recorded(database: Database, count: int, *, old: int = 0) -> None:
    """Entries of today, before them ``old`` ones that the retention deletes."""
    for number in range(old + count):
        with database.writing() as connection, pytest.MonkeyPatch.context() as past:
            if number < old:
                past.setattr(audit, "now", lambda: OLD)
            audit.record(connection, AuditContext("ann", "edit"), f"m{number}", {})


def entries(database: Database) -> Sequence[Any]:
    with database.reading() as connection:
        return connection.execute(text("SELECT * FROM audit ORDER BY id")).all()


def run(database: Database, *statements: str) -> None:
    """Run statements as a client with its own connection does, none of whose entries came before."""
    last = entries(database)[-1].id
    other = Database(database.url.render_as_string(hide_password=False).replace("+psycopg", ""))
    try:
        with other.writing() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement.replace("LAST", str(last)))
    finally:
        other.close()


def removed(database: Database) -> int:
    return retention.run(database, Limits(audit=1))["audit"]


def refused(database: Database, *statements: str) -> None:
    before = entries(database)
    with pytest.raises(DBAPIError):
        run(database, *statements)
    assert entries(database) == before
    recorded(database, 1)  # the log goes on, under the next id
    assert [*entries(database)][:-1] == [*before]


@ON_BOTH
def test_no_statement_alters_replaces_or_removes_an_entry(database: Database) -> None:
    recorded(database, 4)
    for statement in (*REFUSED, *(OF_SQLITE if database.sqlite else OF_POSTGRES)):
        if "MERGE" in statement and not database.sqlite and _version(database) < 150000:
            continue
        refused(database, statement)
    if database.sqlite:
        for recursive in ("ON", "OFF"):
            refused(database, f"PRAGMA recursive_triggers={recursive}", OF_SQLITE[0])
        assert [one.id for one in entries(database)] == [*range(1, len(entries(database)) + 1)]


@ON_BOTH
def test_the_counter_of_ids_does_not_open_the_log(database: Database) -> None:
    """Whoever sets the counter back still reaches no id that an entry has or had."""
    recorded(database, 2, old=4)
    assert removed(database) == 4
    back = (
        "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'audit'"
        if database.sqlite
        else "SELECT setval('audit_id_seq', 1, false)"
    )
    before = entries(database)
    for number in (1, before[0].id, before[-1].id):
        with pytest.raises(DBAPIError):
            run(database, back, f"INSERT INTO audit ({COLUMNS}) VALUES ({number}, {FORGED})")
    if database.sqlite:
        with pytest.raises(DBAPIError):
            run(database, back, f"REPLACE INTO audit ({COLUMNS}) VALUES (LAST, {FORGED})")
    assert entries(database) == before


def test_a_temporary_table_of_its_name_does_not_open_the_log(database: Database) -> None:
    recorded(database, 3)
    place = "main" if database.sqlite else "public"
    made = (
        f"CREATE TEMPORARY TABLE audit AS SELECT * FROM {place}.audit",
        "INSERT INTO audit (id, until) VALUES (99, 98)",
    )
    refused(database, *made, f"DELETE FROM {place}.audit WHERE id = 1")
    refused(database, *made, f"INSERT INTO {place}.audit ({COLUMNS}) VALUES (98, {FORGED})")


def test_the_retention_records_how_many_and_up_to_where(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)  # of several batches there is one entry
    recorded(database, 3, old=7)
    assert removed(database) == 7
    [*left, told] = entries(database)
    assert [one.id for one in (*left, told)] == [8, 9, 10, 11]
    assert (told.who, told.action, told.subject, told.until) == ("importer", "delete entries", "audit", 7)
    assert json.loads(told.details) == {"entries": 7, "until": 7, "at": OLD}
    assert removed(database) == 0  # and is no reason for another run
    assert entries(database)[-1] == told
    refused(database, "DELETE FROM audit WHERE id = 11")


def test_an_entry_with_a_wrong_time_does_not_empty_the_log(database: Database) -> None:
    """Only the oldest entries go: one that a wrong clock dated back takes none before it along."""
    recorded(database, 3)
    recorded(database, 1, old=1)
    assert removed(database) == 0
    assert len(entries(database)) == 5


def _version(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.execute(text("SHOW server_version_num")).scalar_one())
