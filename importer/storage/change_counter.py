"""The mark that grows whenever a document changes, so that counts are made anew."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from importer.storage.tables import marks

MARK = "configs"


def changed(connection: Connection) -> None:
    """Record that a document, or what is listed of it, has changed."""
    grown = update(marks).where(marks.c.key == MARK).values(value=marks.c.value + 1)
    if connection.execute(grown).rowcount == 0:
        connection.execute(insert(marks).values(key=MARK, value=1))


def current(connection: Connection) -> int:
    """Return the mark as it is."""
    return connection.execute(select(marks.c.value).where(marks.c.key == MARK)).scalar() or 0
