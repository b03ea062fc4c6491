"""Published entries as they were rendered, and when the index changed last."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection, delete, insert, select, update

from importer.storage.tables import marks, published

P = published.c
NUMBER, WHEN = "published", "published_at"


class Entry(Protocol):
    """A rendered entry: its item of the index, its own file, and what lists show of it."""

    @property
    def item(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def about(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """``number`` grows with every change; ``at`` is when the last one was, in epoch seconds."""

    number: int
    at: int


def mark(connection: Connection) -> Mark:
    """Return the mark of the index; what is read after it is at least as new."""
    query = select(marks.c.key, marks.c.value).where(marks.c.key.in_((NUMBER, WHEN)))
    values = {row[0]: row[1] for row in connection.execute(query)}
    return Mark(values.get(NUMBER, 0), values.get(WHEN, 0))


def items(connection: Connection) -> list[tuple[str, str]]:
    """Return every name with its item of the index, by name."""
    return [(row[0], row[1]) for row in connection.execute(select(P.name, P.item).order_by(P.name))]


def listed(connection: Connection) -> list[dict[str, Any]]:
    """Return what lists show of each, by name."""
    return [json.loads(text) for text in connection.execute(select(P.about).order_by(P.name)).scalars()]


def file(connection: Connection, name: str) -> tuple[str, str] | None:
    """Return an entry's own file and the time of its last change; ``None`` for an unpublished one."""
    row = connection.execute(select(P.file, P.at).where(P.name == name)).first()
    return None if row is None else (row[0], row[1])


def put(connection: Connection, name: str, number: int, entry: Entry | None, at: str) -> None:
    """Put a document's entry into the index, or take it out; the index has a new number then."""
    old = connection.execute(select(P.item, P.file).where(P.name == name)).first()
    if (old is None and entry is None) or (old and entry and (old[0], old[1]) == (entry.item, entry.file)):
        return
    connection.execute(delete(published).where(P.name == name))
    if entry is not None:
        about = json.dumps(dict(entry.about), ensure_ascii=False)
        row = {"name": name, "version": number, "item": entry.item, "file": entry.file, "about": about}
        connection.execute(insert(published).values(**row, at=at))
    _set(connection, NUMBER, mark(connection).number + 1)
    _set(connection, WHEN, int(time.time()))


def _set(connection: Connection, key: str, value: int) -> None:
    changed = update(marks).where(marks.c.key == key).values(value=value)
    if connection.execute(changed).rowcount == 0:
        connection.execute(insert(marks).values(key=key, value=value))
