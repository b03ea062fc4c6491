"""Migrations: numbered, run in order when a process starts, each once, all in one transaction."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import cast

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from importer.errors import ServiceError
from importer.storage.database import MIGRATIONS, Database, driver_message
from importer.storage.tables import METADATA

# One module each: ``STATEMENTS``, ``SQLITE`` and ``POSTGRES``; what was released is never edited.
NUMBERED = {1: "m0001_first"}

OF_SQLITE = {"COUNTED": "INTEGER PRIMARY KEY AUTOINCREMENT", "BINARY": "BLOB"}
OF_POSTGRES = {"COUNTED": "BIGSERIAL PRIMARY KEY", "BINARY": "BYTEA"}


def open_database(url: str) -> Database:
    """Return the database at a URL, brought up to date.

    Raises UsageError("bad-value") for another kind of URL, ServiceError: "no-gallery" where it cannot be
    used, "newer-gallery" or "early-gallery" where another importer has made it.
    """
    try:
        database = Database(url)
    except OSError as error:
        raise ServiceError("no-gallery", place=error.filename, problem=error.strerror) from None
    try:
        migrate(database)
    except DBAPIError as error:
        database.close()
        raise ServiceError("no-gallery", place=database.place, problem=driver_message(error)) from None
    except BaseException:
        database.close()
        raise
    return database


def migrate(database: Database) -> list[int]:
    """Bring the database up to date; return the numbers of the migrations that ran.

    Raises ServiceError: "newer-gallery" where it has migrations of a newer importer, "early-gallery" where
    its tables are older than the first migration: those of the development had numbers of their own.
    """
    with database.writing() as connection:
        database.alone(connection, MIGRATIONS)
        connection.execute(text("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)"))
        done = set(connection.execute(text("SELECT number FROM migrations")).scalars())
        if done >= NUMBERED.keys() and not _is_whole(connection):
            raise ServiceError("early-gallery", place=database.place)
        if newer := done - NUMBERED.keys():
            raise ServiceError("newer-gallery", place=database.place, number=max(newer), known=max(NUMBERED))
        pending = [number for number in sorted(NUMBERED) if number not in done]
        for number in pending:
            _run(database, connection, number)
    return pending


def _is_whole(connection: Connection) -> bool:
    """Return whether every table has its columns."""
    found = inspect(connection)
    return all(
        found.has_table(table.name)
        and {column["name"] for column in found.get_columns(table.name)} >= {*table.columns.keys()}
        for table in METADATA.sorted_tables
    )


def _run(database: Database, connection: Connection, number: int) -> None:
    own = OF_SQLITE if database.sqlite else OF_POSTGRES
    for statement in (*statements(number), *_own(number, "SQLITE" if database.sqlite else "POSTGRES")):
        for word, type_ in own.items():
            statement = statement.replace(word, type_)  # noqa: PLW2901 - the statement in its own dialect
        connection.execute(text(statement))
    connection.execute(text("INSERT INTO migrations (number) VALUES (:n)"), {"n": number})


def statements(number: int) -> tuple[str, ...]:
    """Return a migration's SQL; ``COUNTED`` is a key that the database numbers, ``BINARY`` its bytes."""
    return cast(tuple[str, ...], _module(number).STATEMENTS)


def _own(number: int, kind: str) -> tuple[str, ...]:
    """Return what is done beside on one kind of database alone."""
    return getattr(_module(number), kind, ())


def _module(number: int) -> ModuleType:
    return import_module(f"{__name__}.{NUMBERED[number]}")
