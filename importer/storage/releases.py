"""Releases as rows, and the entries that are served as they were rendered."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from importer.frozen import frozen
from importer.storage import documents, tables
from importer.storage.tables import marks, published

P = published.c
NUMBER, WHEN = "published", "published_at"
OURS = ("device", "facts")  # for variants and lists of importer: LocalAI's lists have no such members


class Entry(Protocol):
    """A rendered entry: its item of the index, its own file, and what lists show of it."""

    @property
    def item(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def about(self) -> Mapping[str, object]: ...


@frozen
class Mark:
    """``number`` grows with every change; ``at`` is when the last one was, in epoch seconds."""

    number: int
    at: int


def mark(connection: Connection) -> Mark:
    """Return the mark of the index; what is read after it is at least as new."""
    query = select(marks.c.key, marks.c.value).where(marks.c.key.in_((NUMBER, WHEN)))
    values = {row[0]: row[1] for row in connection.execute(query)}
    return Mark(values.get(NUMBER, 0), values.get(WHEN, 0))


def items(connection: Connection) -> list[tuple[str, str, dict[str, object]]]:
    """Return every name with its item of the index and what lists show of it, by name."""
    query = select(P.name, P.item, P.about).order_by(P.name)
    return [(row.name, row.item, json.loads(row.about)) for row in connection.execute(query)]


def listed(connection: Connection) -> list[dict[str, object]]:
    """Return what LocalAI's lists show of each, by name."""
    texts = connection.execute(select(P.about).order_by(P.name)).scalars()
    return [{key: value for key, value in json.loads(text).items() if key not in OURS} for text in texts]


def facts(connection: Connection, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the facts of the releases that are served, by name."""
    rows = connection.execute(select(P.name, P.about).where(P.name.in_(names)))
    return {row.name: json.loads(row.about)["facts"] for row in rows}


def file(connection: Connection, name: str) -> tuple[str, str] | None:
    """Return an entry's own file and the time of its last change; ``None`` for an unpublished one."""
    row = connection.execute(select(P.file, P.at).where(P.name == name)).first()
    return None if row is None else (row[0], row[1])


def release(connection: Connection, name: str) -> int | None:
    """Return the number of the release that is served; ``None`` where none is."""
    return connection.execute(select(P.release).where(P.name == name)).scalar()


def put(connection: Connection, name: str, release: int, version: int, entry: Entry, at: str) -> None:
    """Serve a release's entry in place of any other one of its document; the index has a new number."""
    connection.execute(delete(published).where(P.name == name))
    row = {"name": name, "release": release, "version": version, "item": entry.item, "file": entry.file}
    about = json.dumps(dict(entry.about), ensure_ascii=False)
    connection.execute(insert(published).values(**row, about=about, at=at))
    _grow(connection)


def remove(connection: Connection, name: str) -> bool:
    """Take a document's entry out of the index; return whether there was one."""
    gone = connection.execute(delete(published).where(P.name == name)).rowcount > 0
    if gone:
        _grow(connection)
    return gone


def _grow(connection: Connection) -> None:
    _set(connection, NUMBER, mark(connection).number + 1)
    _set(connection, WHEN, int(time.time()))


def _set(connection: Connection, key: str, value: int) -> None:
    changed = update(marks).where(marks.c.key == key).values(value=value)
    if connection.execute(changed).rowcount == 0:
        connection.execute(insert(marks).values(key=key, value=value))


R = tables.releases.c


@frozen
class ReleaseEntry:
    """What LocalAI is shown of a release, as it was rendered, and what that lacks: effect, kind, message."""

    item: str
    file: str
    about: Mapping[str, object]
    lost: Sequence[Mapping[str, str]]


@frozen
class Release:
    """A released version: its text, its ``data`` as JSON, its entry, who released it when, and why.

    ``receipt_hash`` is the hash of its receipt. A withdrawn release has who withdrew it when, and why.
    """

    name: str
    number: int
    version: int
    digest: str
    text: str
    data: str
    receipt_hash: str | None
    template: str | None
    entry: ReleaseEntry
    by: str
    at: str
    why: str | None
    withdrawn_by: str | None = None
    withdrawn_at: str | None = None
    withdrawn_why: str | None = None


COLUMNS = [R[f.name] for f in fields(Release)]


def page(connection: Connection, name: str, limit: int, before: int | None = None) -> list[Release]:
    """Return a document's releases, the newest first, those before a number."""
    query = _of(name).order_by(R.number.desc()).limit(limit)
    if before is not None:
        query = query.where(R.number < before)
    return [_read(row) for row in connection.execute(query).mappings()]


def count(connection: Connection, name: str) -> int:
    """Return how many releases a document has."""
    return connection.execute(select(func.count()).where(R.name == name)).scalar_one()


def get(connection: Connection, name: str, number: int) -> Release | None:
    """Return one release, if there is one of this number."""
    row = connection.execute(_of(name).where(R.number == number)).mappings().first()
    return None if row is None else _read(row)


def served(connection: Connection, name: str) -> Release | None:
    """Return the release that is served; ``None`` where none is."""
    number = release(connection, name)
    return None if number is None else get(connection, name, number)


def receipt(connection: Connection, release: Release) -> str | None:
    """Return the text of a release's receipt."""
    found = documents.receipt_texts(connection, [release.receipt_hash])
    return None if release.receipt_hash is None else found[release.receipt_hash]


def next_number(connection: Connection, name: str) -> int:
    """Return the number of a document's next release; numbers go on after a deletion."""
    return 1 + (connection.execute(select(func.max(R.number)).where(R.name == name)).scalar() or 0)


def add(connection: Connection, release: Release) -> None:
    """Add a release, and serve it."""
    row = {f.name: getattr(release, f.name) for f in fields(release)}
    entry = {f.name: getattr(release.entry, f.name) for f in fields(release.entry)}
    row["entry"] = json.dumps(entry, ensure_ascii=False)
    connection.execute(insert(tables.releases).values(row))
    serve(connection, release, release.at)


def serve(connection: Connection, release: Release, at: str) -> None:
    """Serve a release in place of any other one of its document."""
    put(connection, release.name, release.number, release.version, release.entry, at)


def withdraw(
    connection: Connection, name: str, numbers: Sequence[int] | None, by: str, at: str, why: str | None
) -> bool:
    """Mark releases as withdrawn, ``None`` all of them; return whether one of them was served till now."""
    chosen = [R.name == name, R.withdrawn_at.is_(None)]
    if numbers is not None:
        chosen.append(R.number.in_(numbers))
    row = {"withdrawn_by": by, "withdrawn_at": at, "withdrawn_why": why}
    connection.execute(update(tables.releases).where(*chosen).values(row))
    number = release(connection, name)
    if number is None or not (numbers is None or number in numbers):
        return False
    return remove(connection, name)


def _of(name: str) -> Select[Any]:
    return select(*COLUMNS).where(R.name == name)


def _read(row: Mapping[Any, Any]) -> Release:
    return Release(**{**row, "entry": ReleaseEntry(**json.loads(row["entry"]))})
