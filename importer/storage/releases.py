"""Releases: the version of each document that is served, with its entry as it was rendered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Protocol

from sqlalchemy import Connection, delete, insert, select, update

from importer.frozen import frozen
from importer.storage.tables import marks, published

P = published.c
NUMBER = "published"
OURS = ("device", "facts")  # for lists of importer: LocalAI's lists have no such members


class Entry(Protocol):
    """A rendered entry: its item of the index, its own file, and what lists show of it."""

    @property
    def item(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def about(self) -> Mapping[str, object]: ...


@frozen
class Served:
    """The version that is served, and who released it when; ``left`` is the one that was rolled back."""

    version: int
    digest: str
    by: str
    at: str
    left: int | None = None


def mark(connection: Connection) -> int:
    """Return the number of the index, that grows with every change; what is read after it is as new."""
    return connection.execute(select(marks.c.value).where(marks.c.key == NUMBER)).scalar() or 0


def items(connection: Connection) -> list[tuple[str, str]]:
    """Return every name with its item of the index, by name."""
    return [(row.name, row.item) for row in connection.execute(select(P.name, P.item).order_by(P.name))]


def listed(connection: Connection) -> list[dict[str, object]]:
    """Return what LocalAI's lists show of each, by name."""
    texts = connection.execute(select(P.about).order_by(P.name)).scalars()
    return [{key: value for key, value in json.loads(text).items() if key not in OURS} for text in texts]


def file(connection: Connection, name: str) -> str | None:
    """Return an entry's own file; ``None`` for an unpublished one."""
    return connection.execute(select(P.file).where(P.name == name)).scalar()


def shows(connection: Connection, name: str, entry: Entry) -> bool:
    """Return whether this very entry is served."""
    row = connection.execute(select(P.item, P.file).where(P.name == name)).first()
    return row is not None and tuple(row) == (entry.item, entry.file)


def served(connection: Connection, name: str) -> Served | None:
    """Return the version that is served; ``None`` where none is."""
    query = select(*(P[f.name] for f in fields(Served))).where(P.name == name)
    row = connection.execute(query).first()
    return None if row is None else Served(*row)


def serve(connection: Connection, name: str, one: Served, entry: Entry) -> None:
    """Serve a version in place of any other one of its document; the index has a new number."""
    connection.execute(delete(published).where(P.name == name))
    shown = {
        "item": entry.item,
        "file": entry.file,
        "about": json.dumps(dict(entry.about), ensure_ascii=False),
    }
    pointer = {f.name: getattr(one, f.name) for f in fields(Served)}
    connection.execute(insert(published).values(name=name, **pointer, **shown))
    _grow(connection)


def remove(connection: Connection, name: str) -> bool:
    """Take a document's entry out of the index; return whether there was one."""
    gone = connection.execute(delete(published).where(P.name == name)).rowcount > 0
    if gone:
        _grow(connection)
    return gone


def _grow(connection: Connection) -> None:
    changed = update(marks).where(marks.c.key == NUMBER).values(value=marks.c.value + 1)
    if connection.execute(changed).rowcount == 0:
        connection.execute(insert(marks).values(key=NUMBER, value=1))
