"""A gallery's database as processes open it: reached, brought up to date, or a sentence that says why not."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from importer.errors import ServiceError
from importer.gallery.database import Database
from importer.gallery.migrations import migrate


def opened(url: str) -> Database:
    """The database, up to date.

    Raises UsageError("bad-value") for what is no URL of one, ServiceError("no-gallery") where it cannot be
    used, ServiceError("newer-gallery") where a newer importer has changed it.
    """
    try:
        database = Database(url)
    except OSError as error:
        raise ServiceError("no-gallery", place=error.filename, problem=error.strerror) from None
    try:
        migrate(database)
    except DBAPIError as error:
        database.close()
        raise ServiceError("no-gallery", place=database.place, problem=said(error)) from None
    except BaseException:
        database.close()
        raise
    return database


def said(error: Exception) -> str:
    """The driver's own words, without its advice."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = str(cause).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(cause).__name__
