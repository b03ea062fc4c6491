"""The database's tables as they are made, with indexes and the guards of the audit log.

An entry of the log has the next id, and stays.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from importer.errors import ServiceError
from importer.storage.database import MIGRATIONS, Database, driver_message
from importer.storage.tables import METADATA

VERSION = 1  # of the tables; a later one brings the steps that lead to it
INDEXES = (
    "CREATE INDEX configs_by_model ON configs (model)",
    "CREATE INDEX configs_released ON configs (name) WHERE release IS NOT NULL",
    "CREATE INDEX configs_deleted ON configs (deleted_at) WHERE deleted_at IS NOT NULL",
    "CREATE INDEX configs_updated ON configs (updated_at, name)",
    "CREATE INDEX configs_urgent ON configs (urgency, name)",
    "CREATE INDEX versions_by_receipt ON versions (receipt_hash)",
    "CREATE INDEX audit_by_subject ON audit (subject)",
    "CREATE UNIQUE INDEX keys_folded ON keys (folded)",
    # Each holds all that its queries look at: rows with their requests and results are large.
    """CREATE INDEX jobs_waiting ON jobs (
        kind, "by", root, place, id, state, claims, version, device, executor, ended_at)
        WHERE executor IS NULL AND ended_at IS NULL""",
    """CREATE INDEX jobs_roots ON jobs (id, root, kind, state, created_at, started_at, ended_at)
        WHERE root = id""",
    "CREATE INDEX jobs_by_state ON jobs (state, id, root, kind, ended_at)",
    "CREATE INDEX jobs_by_root ON jobs (root, place, id, state)",
    "CREATE INDEX jobs_by_config ON jobs (config, id)",
    "CREATE INDEX jobs_ended ON jobs (ended_at)",
)
ROWS = (
    "INSERT INTO marks (key, value) VALUES ('retention', 0)",
    "INSERT INTO turns (kind, lane, flow, number) VALUES ('', 'clock', '', 0)",
)
SQLITE = (
    # Lists and facets come from an index with all that they look at; PostgreSQL's hold no long text. The name
    # comes first: a list by name ends at its limit, whatever its filters are.
    """CREATE INDEX configs_listed ON configs (
        name, deleted_at, state, search, backend, family, modalities, tool_parser, reasoning_parser, license,
        quantization, size, attention, review, validation, memory, devices, whole_bytes, part_bytes,
        updated_at, created_at, checked_at, urgency, weights, context, parameters, model, kind,
        tags, release) WHERE deleted_at IS NULL""",
    """CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    # REPLACE fires no trigger for the row that it deletes, so the trigger of the new row refuses it.
    """CREATE TRIGGER audit_no_replacement BEFORE INSERT ON audit
        WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    # Only behind the insertion is the id known that SQLite itself gave.
    """CREATE TRIGGER audit_next AFTER INSERT ON audit
        WHEN NEW.id <> 1 + coalesce((SELECT id FROM audit WHERE id < NEW.id ORDER BY id DESC LIMIT 1), 0)
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    """CREATE TRIGGER audit_no_deletion BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
)
POSTGRES = (
    "CREATE INDEX configs_by_state ON configs (state, name)",
    """CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$""",
    """CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit
        FOR EACH ROW EXECUTE FUNCTION audit_append_only()""",
    # The sequence by the table's own number: a temporary table of the same name would come first.
    """CREATE FUNCTION audit_next() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.id <> currval(pg_get_serial_sequence(TG_RELID::regclass::text, 'id')) THEN
                RAISE EXCEPTION 'the audit log is append-only';
            END IF;
            RETURN NEW;
        END $$""",
    """CREATE TRIGGER audit_next BEFORE INSERT ON audit
        FOR EACH ROW EXECUTE FUNCTION audit_next()""",
    """CREATE TRIGGER audit_no_truncation BEFORE TRUNCATE ON audit
        FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()""",
)


def open_database(url: str) -> Database:
    """Return the database at a URL, with its tables.

    Raises UsageError("bad-value") for another kind of URL, ServiceError: "no-gallery" where it cannot be
    used, "newer-gallery" or "early-gallery" where another importer has made it.
    """
    try:
        database = Database(url)
    except OSError as error:
        raise ServiceError("no-gallery", place=error.filename, problem=error.strerror) from None
    try:
        prepare(database)
    except DBAPIError as error:
        database.close()
        raise ServiceError("no-gallery", place=database.place, problem=driver_message(error)) from None
    except BaseException:
        database.close()
        raise
    return database


def prepare(database: Database) -> bool:
    """Make the tables where there are none, all in one transaction; return whether there were none.

    Raises ServiceError: "newer-gallery" where a newer importer has made them, "early-gallery" where they are
    of the development before the first version.
    """
    with database.writing() as connection:
        database.alone(connection, MIGRATIONS)
        connection.execute(text("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)"))
        found = connection.execute(text("SELECT max(number) FROM migrations")).scalar()
        if found is None:
            METADATA.create_all(connection)
            for statement in (*INDEXES, *(SQLITE if database.sqlite else POSTGRES), *ROWS):
                connection.execute(text(statement))
            connection.execute(text("INSERT INTO migrations (number) VALUES (:n)"), {"n": VERSION})
            return True
        if not _has_tables(connection, newer=found > VERSION):
            raise ServiceError("early-gallery", place=database.place)
        if found > VERSION:
            raise ServiceError("newer-gallery", place=database.place, number=found, known=VERSION)
        return False


def _has_tables(connection: Connection, *, newer: bool) -> bool:
    """Return whether every table has its columns; only those of a newer importer may have more."""
    found = inspect(connection)
    for table in METADATA.sorted_tables:
        own = {*table.columns.keys()}
        present = (
            {one["name"] for one in found.get_columns(table.name)} if found.has_table(table.name) else ()
        )
        if not own.issubset(present) or (own != present and not newer):
            return False
    return True
