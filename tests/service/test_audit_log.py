"""The audit log only grows: no statement alters, replaces or removes an entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from importer.storage import audit
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from tests.storing import ON_BOTH, database, empty

__all__ = ["database", "empty"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
COLUMNS = "id, at, who, action, details"
FORGED = "'2026-01-01T00:00:00+00:00', 'mallory', 'approve', '{}'"
# On both kinds of database; LAST is the newest id.
REFUSED = (
    "UPDATE audit SET who = 'bob'", "UPDATE audit SET id = id + 100",
    "DELETE FROM audit", "DELETE FROM audit WHERE id = LAST", "DELETE FROM audit WHERE id = 1",
    f"INSERT INTO audit ({COLUMNS}) VALUES (LAST, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (1, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (0, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (-1, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (LAST + 2, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (9223372036854775807, {FORGED})",
    f"INSERT INTO audit ({COLUMNS}) VALUES (1, {FORGED}) ON CONFLICT (id) DO UPDATE SET who = 'bob'",
    f"INSERT INTO audit ({COLUMNS}) SELECT id, at, 'bob', action, details FROM audit",
)  # fmt: skip
OF_SQLITE = (
    f"INSERT OR REPLACE INTO audit ({COLUMNS}) VALUES (LAST, {FORGED})",
    f"INSERT OR REPLACE INTO audit ({COLUMNS}) VALUES (1, {FORGED})",
    f"INSERT OR REPLACE INTO audit ({COLUMNS.replace('id', 'rowid', 1)}) VALUES (2, {FORGED})",
    f"REPLACE INTO audit ({COLUMNS}) VALUES (LAST + 1, {FORGED}), (LAST + 1, {FORGED})",
    f"INSERT OR IGNORE INTO audit ({COLUMNS}) VALUES (LAST + 9, {FORGED})",
    "UPDATE OR REPLACE audit SET id = 1 WHERE id = LAST",
)
OF_POSTGRES = (
    "TRUNCATE audit",
    "TRUNCATE audit RESTART IDENTITY CASCADE",
    "WITH gone AS (DELETE FROM audit RETURNING id) SELECT count(*) FROM gone",
    f"INSERT INTO audit ({COLUMNS}) OVERRIDING SYSTEM VALUE VALUES (LAST + 7, {FORGED})",
    "MERGE INTO audit USING (SELECT 1) one ON id = 1 WHEN MATCHED THEN DELETE",
)


def recorded(database: Database, count: int) -> None:
    for number in range(count):
        with database.writing() as connection:
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


@pytest.mark.parametrize("empty", ["postgresql"], indirect=True)
def test_the_counter_of_ids_does_not_open_the_log(database: Database) -> None:
    """PostgreSQL's, for SQLite has none: whoever sets it back still reaches no id that an entry has."""
    recorded(database, 4)
    back, before = "SELECT setval('audit_id_seq', 1, false)", entries(database)
    for number in (1, before[-1].id):
        with pytest.raises(DBAPIError):
            run(database, back, f"INSERT INTO audit ({COLUMNS}) VALUES ({number}, {FORGED})")
    assert entries(database) == before


def test_a_temporary_table_of_its_name_does_not_open_the_log(database: Database) -> None:
    recorded(database, 3)
    place = "main" if database.sqlite else "public"
    made = (
        f"CREATE TEMPORARY TABLE audit AS SELECT * FROM {place}.audit",
        "INSERT INTO audit (id) VALUES (99)",
    )
    refused(database, *made, f"DELETE FROM {place}.audit WHERE id = 1")
    refused(database, *made, f"INSERT INTO {place}.audit ({COLUMNS}) VALUES (98, {FORGED})")


def _version(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.execute(text("SHOW server_version_num")).scalar_one())
