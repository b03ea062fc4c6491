"""Documents and their versions as rows: lists, counts, and one more version."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, insert, select, tuple_, update

from importer.storage import receipts
from importer.storage.tables import configs, marks, versions

T, V = configs.c, versions.c
MARK = "configs"
MAX_COUNTS = 500  # filters whose counts are kept


@dataclass(frozen=True, slots=True)
class Summary:
    """A document in a list; ``release`` is the number that is served.

    ``reason`` is why the working copy is not published.
    """

    name: str
    version: int
    digest: str
    model: str | None
    revision: str | None
    backend: str | None
    family: str | None
    kind: str | None
    state: str
    review: str
    validation: str
    reason: str | None
    release: int | None
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class Version:
    """One version's files, the text's ``data`` as JSON, and who made it when, by which action and why."""

    name: str
    number: int
    action: str
    text: str
    data: str
    receipt: str | None
    template: str | None
    digest: str
    state: str
    by: str
    at: str
    why: str | None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents a list has; ``q`` is part of a name, model or family.

    ``released`` selects documents with a release that is served, or those without one.
    """

    state: Sequence[str] = ()
    family: str | None = None
    backend: str | None = None
    q: str | None = None
    released: bool | None = None
    review: Sequence[str] = ()
    validation: Sequence[str] = ()
    updated_since: str | None = None
    model: str | None = None

    @property
    def key(self) -> Hashable:
        """Return the filters for a cache."""
        values = (getattr(self, one.name) for one in fields(self))
        return tuple(value if isinstance(value, str | bool | None) else tuple(value) for value in values)


SUMMARY = [T[f.name] for f in fields(Summary)]
VERSION = [V[f.name] for f in fields(Version) if f.name != "receipt"] + [V.receipt_hash]


def page(
    connection: Connection, filters: Filters, limit: int, after: Sequence[str] = (), sort: str = "name"
) -> list[Summary]:
    """Return documents by a column and then by name, with ``-`` the last first, those behind ``after``."""
    column = sort.removeprefix("-")
    columns = [T.name] if column == "name" else [T[column], T.name]
    query = select(*SUMMARY).where(T.deleted_at.is_(None), *_conditions(filters))
    if after:
        place, here = tuple_(*columns), tuple_(*after)
        query = query.where(place < here if sort.startswith("-") else place > here)
    order = [one.desc() if sort.startswith("-") else one for one in columns]
    return [Summary(**row) for row in connection.execute(query.order_by(*order).limit(limit)).mappings()]


def names(connection: Connection, filters: Filters) -> list[str]:
    """Return the names of all documents that a filter leaves."""
    query = select(T.name).where(T.deleted_at.is_(None), *_conditions(filters)).order_by(T.name)
    return [*connection.execute(query).scalars()]


def summary(connection: Connection, name: str) -> Summary | None:
    """Return a document's row of the list, if it is there."""
    query = select(*SUMMARY).where(T.name == name, T.deleted_at.is_(None))
    row = connection.execute(query).mappings().first()
    return None if row is None else Summary(**row)


def last_number(connection: Connection, name: str) -> int:
    """Return the number of the newest version, also of a deleted document; 0 where there is none."""
    return connection.execute(select(T.version).where(T.name == name)).scalar() or 0


def newest(connection: Connection, name: str) -> Version:
    """Return the newest version of a document that is there."""
    return _read(connection, _versions(name).limit(1))[0]


def history(
    connection: Connection, name: str, limit: int | None = None, before: int | None = None
) -> list[Version]:
    """Return versions, the newest first: all, or at most ``limit`` of those before a number."""
    query = _versions(name).limit(limit)
    return _read(connection, query if before is None else query.where(V.number < before))


def count_versions(connection: Connection, name: str) -> int:
    """Return how many versions a document has."""
    query = select(func.count()).select_from(versions).where(V.name == name)
    return connection.execute(query).scalar_one()


def makers(connection: Connection, name: str) -> list[tuple[str, str, str]]:
    """Return data, person and time of every version, the newest first."""
    query = select(V.data, V.by, V.at).where(V.name == name).order_by(V.number.desc())
    return [(row.data, row.by, row.at) for row in connection.execute(query)]


def version(connection: Connection, name: str, number: int) -> Version | None:
    """Return one version, if there is one of this number."""
    return next(iter(_read(connection, _versions(name).where(V.number == number))), None)


def add(connection: Connection, new: Version, listed: Mapping[str, Any]) -> None:
    """Add a version, and the columns of the list that follow from it."""
    _insert(connection, new)
    words = filter(None, (new.name, listed["model"], listed["family"]))
    row = {
        **listed, "version": new.number, "digest": new.digest, "state": new.state, "updated_at": new.at,
        "deleted_at": None, "search": "\n".join(words).lower(),
    }  # fmt: skip
    if connection.execute(update(configs).where(T.name == new.name).values(row)).rowcount == 0:
        connection.execute(insert(configs).values(row | {"name": new.name, "created_at": new.at}))
    changed(connection)


def delete(connection: Connection, deletion: Version) -> None:
    """Add the version that records a deletion, and remove the document from the list."""
    _insert(connection, deletion)
    row = {
        "version": deletion.number,
        "release": None,
        "deleted_at": deletion.at,
        "updated_at": deletion.at,
        "state": deletion.state,
    }
    connection.execute(update(configs).where(T.name == deletion.name).values(row))
    changed(connection)


class CountCache:
    """How many documents filters leave: counted again only after a document has changed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[Hashable, tuple[int, int]] = {}

    def count(self, connection: Connection, filters: Filters) -> int:
        """Return the number of documents that a list has in all."""
        every = select(func.count()).select_from(configs)
        query = every.where(T.deleted_at.is_(None), *_conditions(filters))
        return self._get(filters.key, _mark(connection), lambda: connection.execute(query).scalar_one())

    def _get(self, key: Hashable, mark: int, count: Callable[[], int]) -> int:
        with self._lock:
            known = self._counts.get(key)
        if known is not None and known[0] == mark:
            return known[1]
        number = count()
        with self._lock:
            self._counts.pop(key, None)
            self._counts[key] = (mark, number)
            while len(self._counts) > MAX_COUNTS:
                del self._counts[next(iter(self._counts))]
        return number


def changed(connection: Connection) -> None:
    """Record that a document has changed, so that counts are made anew."""
    grown = update(marks).where(marks.c.key == MARK).values(value=marks.c.value + 1)
    if connection.execute(grown).rowcount == 0:
        connection.execute(insert(marks).values(key=MARK, value=1))


def _mark(connection: Connection) -> int:
    return connection.execute(select(marks.c.value).where(marks.c.key == MARK)).scalar() or 0


def _versions(name: str) -> Select[Any]:
    return select(*VERSION).where(V.name == name).order_by(V.number.desc())


def _read(connection: Connection, query: Select[Any]) -> list[Version]:
    """Return the versions of a query with their receipts."""
    rows = connection.execute(query).mappings().all()
    texts = receipts.texts(connection, [row["receipt_hash"] for row in rows])
    return [
        Version(
            **{key: value for key, value in row.items() if key != "receipt_hash"},
            receipt=None if row["receipt_hash"] is None else texts[row["receipt_hash"]],
        )
        for row in rows
    ]


def _insert(connection: Connection, new: Version) -> None:
    row = {f.name: getattr(new, f.name) for f in fields(new) if f.name != "receipt"}
    stored = None if new.receipt is None else receipts.put(connection, new.receipt)
    connection.execute(insert(versions).values(**row, receipt_hash=stored))


def _conditions(filters: Filters) -> Iterator[ColumnElement[bool]]:
    if filters.state:
        yield T.state.in_(filters.state)
    for column, value in ((T.family, filters.family), (T.backend, filters.backend), (T.model, filters.model)):
        if value is not None:
            yield column == value
    for column, chosen in ((T.review, filters.review), (T.validation, filters.validation)):
        if chosen:
            yield column.in_(chosen)
    if filters.updated_since is not None:
        yield T.updated_at >= filters.updated_since
    if filters.released is not None:
        yield T.release.is_not(None) if filters.released else T.release.is_(None)
    if filters.q:
        yield T.search.contains(filters.q.lower(), autoescape=True)
