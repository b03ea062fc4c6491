"""Documents and their versions as rows: lists with filters, counts of facets, and what was deleted.

Receipts as compressed pieces by content hash: a version stores only the pieces that no earlier one has.

A receipt's text is cut before each of its upper keys, so that an approval adds no evidence and no exchanges.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    tuple_,
    union_all,
    update,
)

from importer.frozen import frozen
from importer.storage.document_rows import DIFFERS, Json, changed, current, put, search, urgency, words
from importer.storage.tables import configs, pieces, receipts, versions

KEY = re.compile(r'^ "\w+": ', re.MULTILINE)  # an upper key of JSON with an indent of one
SMALL = 1024  # characters: shorter parts go together
LEVEL = 6
BATCH = 500  # hashes in one query; SQLite allows 999 variables in old builds


def put_receipt(connection: Connection, text: str) -> str:
    """Store a receipt's text where no equal one is whole; return its hash."""
    ident = _hash(text)
    known = connection.execute(select(receipts.c.pieces).where(receipts.c.hash == ident)).scalar()
    if known is None or not hashes_in(known):
        order = [(_hash(part), part) for part in cut_receipt(text)]
        parts = dict(order)
        for key in _missing(connection, pieces, [*parts]):
            content = zlib.compress(parts[key].encode(), LEVEL)
            connection.execute(insert(pieces).values(hash=key, content=content))
        row = {"hash": ident, "pieces": json.dumps([key for key, _ in order])}
        write = insert(receipts) if known is None else update(receipts).where(receipts.c.hash == ident)
        connection.execute(write.values(**row))
    return ident


def receipt_texts(connection: Connection, hashes: Iterable[str | None]) -> dict[str, str]:
    """Return the texts of receipts by their hashes; one that is not whole any more is left out."""
    query = select(receipts.c.hash, receipts.c.pieces)
    orders = {
        row.hash: hashes_in(row.pieces)
        for batch in _batches({one for one in hashes if one is not None})
        for row in connection.execute(query.where(receipts.c.hash.in_(batch)))
    }
    stored = {
        row.hash: _content(row.content)
        for batch in _batches({key for order in orders.values() for key in order})
        for row in connection.execute(select(pieces).where(pieces.c.hash.in_(batch)))
    }
    texts = {ident: "".join(stored.get(key, "") for key in order) for ident, order in orders.items()}
    return {ident: text for ident, text in texts.items() if _hash(text) == ident}


def hashes_in(order: str) -> list[str]:
    """Return the hashes of a receipt's pieces as its row has them; none of a damaged row."""
    try:
        found = json.loads(order)
    except ValueError:
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _content(piece: bytes) -> str:
    try:
        return zlib.decompress(piece).decode()
    except (zlib.error, UnicodeDecodeError):
        return ""


def cut_receipt(text: str) -> Iterator[str]:
    """Yield the text in parts that give it again: long values alone, short ones together."""
    places = [match.start() for match in KEY.finditer(text)]
    short = ""
    for begin, end in zip([0, *places], [*places, len(text)], strict=True):
        part = text[begin:end]
        if len(part) < SMALL:
            short += part
            continue
        if short:
            yield short
            short = ""
        yield part
    if short:
        yield short


def _missing(connection: Connection, table: Table, hashes: list[str]) -> list[str]:
    query = select(table.c.hash).where(table.c.hash.in_(hashes))
    there = set(connection.execute(query).scalars())
    return [one for one in hashes if one not in there]


def _batches(hashes: set[str]) -> Iterator[list[str]]:
    ordered = sorted(hashes)
    yield from (ordered[at : at + BATCH] for at in range(0, len(ordered), BATCH))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


C = configs.c
LARGEST = 2**62  # of a number in a filter
ABSENT = "none"  # in a filter: documents without a value
ANY = "any"  # of attention: documents with a reason of any kind
STATES = ("draft", "stale", "rejected", "approved", "validated", "ready", "published")
WORDED = ("modality", "attention", "tag")  # columns of several words
COLUMNS: Mapping[str, ColumnElement[Any]] = {
    "state": C.state, "review": C.review, "validation": C.validation, "backend": C.backend,
    "family": C.family, "kind": C.kind, "modality": C.modalities, "tool_parser": C.tool_parser,
    "reasoning_parser": C.reasoning_parser, "license": C.license, "quantization": C.quantization,
    "size": C.size, "attention": C.attention, "tag": C.tags,
}  # fmt: skip
NUMBERS = ("weights", "memory", "context", "parameters")
PRESENT = ("updated_at", "created_at")  # times that each document has
Value = str | int


@frozen
class Room:
    """The bytes that engines may fill of all cards of a device together, and the backends that run there."""

    budget: int
    backends: tuple[str, ...]

    def runs(self, backend: ColumnElement[Any]) -> ColumnElement[bool]:
        """Return the condition of documents whose engine runs there."""
        return backend.in_(self.backends)

    def holds(self, backend: ColumnElement[Any], needed: ColumnElement[Any]) -> ColumnElement[bool]:
        """Return the condition of documents that need known bytes, and no more than there are."""
        return and_(self.runs(backend), needed.is_not(None), needed <= self.budget)


@frozen
class Filters:
    """Which documents a list has; ``q`` has words that all are in its name, model, description or tags.

    Each sequence selects documents with one of its values; ``none`` stands for no value, and ``any`` of
    attention for each kind. ``released`` selects documents with a version that is served, or those without;
    ``deleted`` those that can be brought back.
    ``room`` selects those that a device holds, whole or in part.
    """

    state: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    backend: tuple[str, ...] = ()
    q: str | None = None
    released: bool | None = None
    deleted: bool = False
    review: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    updated_since: str | None = None
    model: str | None = None
    kind: tuple[str, ...] = ()
    modality: tuple[str, ...] = ()
    tool_parser: tuple[str, ...] = ()
    reasoning_parser: tuple[str, ...] = ()
    license: tuple[str, ...] = ()
    quantization: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    room: Room | None = None


def conditions(filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of documents that the filters leave."""
    yield from unfaceted(filters)
    yield from faceted(filters, COLUMNS)
    if filters.room is not None:
        yield filters.room.holds(C.backend, C.part_bytes)


def unfaceted(filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions that no facet has: of documents that are there or deleted, and of a search."""
    yield C.deleted_at.is_not(None) if filters.deleted else C.deleted_at.is_(None)
    if filters.model is not None:
        yield C.model == filters.model
    if filters.updated_since is not None:
        yield C.updated_at >= filters.updated_since
    if filters.released is not None:
        yield C.release.is_not(None) if filters.released else C.release.is_(None)
    for word in (filters.q or "").lower().split():
        yield C.search.contains(word, autoescape=True)


def faceted(
    filters: Filters, columns: Mapping[str, ColumnElement[Any]], without: str | None = None
) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of facets, except that of one, for columns by the names of facets."""
    for name, column in columns.items():
        if name != without and (chosen := getattr(filters, name)):
            yield or_(*(_has(name, column, value) for value in chosen))


def _has(name: str, column: ColumnElement[Any], value: str) -> ColumnElement[bool]:
    if value == ABSENT:
        return column.is_(None)
    if name == "attention" and value == ANY:
        return column.is_not(None)
    return column.contains(f" {value} ", autoescape=True) if name in WORDED else column == value


def order(sort: str) -> ColumnElement[Any] | None:
    """Return what a sort without its ``-`` orders rows by before their name; ``None`` for the name alone.

    Documents without a figure come last in both directions.
    """
    name, descends = sort.removeprefix("-"), sort.startswith("-")
    if name == "name":
        return None
    if name == "state":
        ranks = {state: rank for rank, state in enumerate(STATES)}
        return case(ranks, value=C.state, else_=len(STATES))
    if name == "attention":
        return C.urgency  # in the order of an index, as the times are
    if name in PRESENT:
        return C[name]
    if name in NUMBERS:
        return func.coalesce(C[name], -1 if descends else LARGEST)
    return func.coalesce(C[name], "")


def whole(sort: str) -> bool:
    """Return whether a sort is by numbers."""
    return sort.removeprefix("-") in (*NUMBERS, "state", "attention")


MAX_COUNTS = 500  # filters whose counts are kept
FACETS = tuple(name for name in COLUMNS if name != "tag")
TOTAL = "total "  # before the name of a number that is of no facet
R = TypeVar("R")


@frozen
class Facets:
    """How many documents each value of a facet would leave; ``None`` is the value of those without one.

    ``fits`` counts by whether the device holds a document: yes, part, no, unknown, and not_applicable;
    ``None`` without a device.
    """

    total: int
    documents: int
    attention: int
    values: Mapping[str, Mapping[str | None, int]]
    fits: Mapping[str, int] | None


class CountCache:
    """How many documents filters leave: counted again only after a document has changed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[Hashable, tuple[int, Any]] = {}

    def count(self, connection: Connection, filters: Filters) -> int:
        """Return the number of documents that a list has in all."""
        return self._get(filters, connection, lambda: total(connection, filters))

    def facets(self, connection: Connection, filters: Filters, room: Room | None) -> Facets:
        """Return the counts of every facet; ``room`` is that of the device."""
        key = ("facets", filters, room)
        return self._get(key, connection, lambda: facets(connection, filters, room))

    def _get(self, key: Hashable, connection: Connection, count: Callable[[], R]) -> R:
        mark = current(connection)
        with self._lock:
            known = self._counts.get(key)
        if known is not None and known[0] == mark:
            return known[1]  # type: ignore[no-any-return]
        found = count()
        with self._lock:
            self._counts.pop(key, None)
            self._counts[key] = (mark, found)
            while len(self._counts) > MAX_COUNTS:
                del self._counts[next(iter(self._counts))]
        return found


def total(connection: Connection, filters: Filters) -> int:
    """Return how many documents the filters leave."""
    return connection.execute(
        select(func.count()).select_from(configs).where(*conditions(filters))
    ).scalar_one()


def facets(connection: Connection, filters: Filters, room: Room | None) -> Facets:
    """Count each facet under the filters of all others; the documents of a search are read once."""
    rows = select(*(column.label(name) for name, column in COLUMNS.items()), C.whole_bytes, C.part_bytes)
    found = rows.where(*unfaceted(filters)).cte("found").prefix_with("MATERIALIZED")
    columns = {name: found.c[name] for name in COLUMNS}
    backend, whole, part = columns["backend"], found.c.whole_bytes, found.c.part_bytes
    fitting = None if filters.room is None else filters.room.holds(backend, part)
    within = () if fitting is None else (fitting,)
    counted = [
        select(literal(name), columns[name], func.count())
        .where(*faceted(filters, columns, name), *within)
        .group_by(columns[name])
        for name in FACETS
    ]
    chosen = [*faceted(filters, columns)]
    totals: dict[str, list[ColumnElement[bool]]] = {
        "total": [*chosen, *within], "attention": [*chosen, *within, columns["attention"].is_not(None)],
    }  # fmt: skip
    if room is not None:
        totals["yes"] = [*chosen, room.holds(backend, whole)]
        totals["held"] = [*chosen, room.holds(backend, part)]
        totals["unknown"] = [*chosen, room.runs(backend), part.is_(None)]
        totals["able"], totals["all"] = [*chosen, room.runs(backend)], chosen
    of_totals = [
        select(literal(f"{TOTAL}{name}"), cast(null(), Text), func.count()).select_from(found).where(*where)
        for name, where in totals.items()
    ]
    values: dict[str, Counter[str | None]] = {name: Counter() for name in FACETS}
    numbers: dict[str, int] = {}
    for name, value, number in connection.execute(union_all(*counted, *of_totals)):
        if name.startswith(TOTAL):
            numbers[name.removeprefix(TOTAL)] = number
            continue
        for word in (value.split() if value else (None,)) if name in WORDED else (value,):
            values[name][word] += number
    by_number = {name: dict(sorted(counts.items(), key=_most)) for name, counts in values.items()}
    return Facets(
        numbers["total"], total(connection, Filters()), numbers["attention"], by_number,
        None if room is None else {
            "yes": numbers["yes"], "part": numbers["held"] - numbers["yes"],
            "no": numbers["able"] - numbers["held"] - numbers["unknown"],
            "unknown": numbers["unknown"], "not_applicable": numbers["all"] - numbers["able"],
        },
    )  # fmt: skip


def _most(pair: tuple[str | None, int]) -> tuple[int, str]:
    return -pair[1], pair[0] or ""


V = versions.c


@frozen
class Version:
    """One version's files, the text's ``data`` as JSON, and who made it when, by which action and why.

    A damaged ``receipt`` is an empty text.
    """

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


VERSION = [V[f.name] for f in fields(Version) if f.name != "receipt"] + [V.receipt_hash]


class Listed(NamedTuple):
    """A document of a page: its name, its ``place`` in the order, and its row as JSON."""

    name: str
    place: Value
    row: str


def page(
    connection: Connection, filters: Filters, limit: int, after: Sequence[Value] = (), sort: str = "name"
) -> list[Listed]:
    """Return documents by a sort and then by name, with ``-`` the last first, those behind ``after``."""
    values = {f"after_{number}": value for number, value in enumerate(after)}
    rows = connection.execute(_listing(filters, sort, len(after)), {"limit": limit, **values})
    return [*map(Listed._make, rows.all())]


@lru_cache(maxsize=64)  # to build the statement takes longer than to run it
def _listing(filters: Filters, sort: str, behind: int) -> Select[Any]:
    """Return the statement of a page; it is given ``limit``, and ``after_0`` and so on, ``behind`` values."""
    place, descends = order(sort), sort.startswith("-")
    columns = [C.name] if place is None else [place, C.name]
    query = select(C.name, columns[0].label("place")).where(*conditions(filters))
    if behind:
        here = (bindparam(f"after_{number}", type_=one.type) for number, one in enumerate(columns))
        at, last = tuple_(*columns), tuple_(*here)
        query = query.where(at < last if descends else at > last)
    # The names come from an index alone; only the rows of the page are read.
    ordered = [one.desc() if descends else one for one in columns]
    chosen = query.order_by(*ordered).limit(bindparam("limit", type_=Integer)).subquery()
    rows = select(C.name, chosen.c.place, C.row).join_from(chosen, configs, C.name == chosen.c.name)
    return rows.order_by(*(one.desc() if descends else one for one in (chosen.c.place, C.name)))


@frozen
class Shown:
    """One document's text, its data and its row as JSON, and what its answer has besides."""

    version: int
    digest: str
    text: str
    data: str
    row: str
    shown: str
    shown_by: str


def shown(connection: Connection, name: str) -> Shown | None:
    """Return what is shown of a document, if it is there."""
    query = (
        select(C.version, C.digest, V.text, V.data, C.row, C.shown, C.shown_by)
        .join_from(configs, versions, and_(V.name == C.name, V.number == C.version))
        .where(C.name == name, C.deleted_at.is_(None))
    )
    row = connection.execute(query).first()
    return None if row is None else Shown(*row)


def last_number(connection: Connection, name: str) -> int:
    """Return the number of the newest version, also of a deleted document; 0 where there is none."""
    return connection.execute(select(C.version).where(C.name == name)).scalar() or 0


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


def makers(connection: Connection, name: str) -> list[tuple[str, str, str, str]]:
    """Return data, their digest, person and time of every version, the newest first."""
    query = select(V.data, V.digest, V.by, V.at).where(V.name == name).order_by(V.number.desc())
    return [(row.data, row.digest, row.by, row.at) for row in connection.execute(query)]


def version(connection: Connection, name: str, number: int) -> Version | None:
    """Return one version, if there is one of this number."""
    return next(iter(_read(connection, _versions(name).where(V.number == number))), None)


def add(connection: Connection, new: Version, listed: Json) -> None:
    """Add a version, and the columns of the list that follow from it: all but those of its version."""
    _insert(connection, new)
    last = connection.execute(select(C.checked_at, C.attention).where(C.name == new.name)).first()
    times = (listed["checked_at"], None if last is None else last.checked_at)
    found = "" if last is None or new.action == "import" else last.attention or ""
    kept = {DIFFERS}.intersection(found.split())  # an import outdates what a recheck found
    attention = words(kept | {*(listed["attention"] or "").split()})
    row = {
        **listed, "attention": attention, "urgency": urgency(attention),
        "checked_at": max((at for at in times if at), default=None), "version": new.number,
        "digest": new.digest, "state": new.state, "updated_at": new.at, "deleted_at": None,
        "search": search(new.name, listed["model"], listed["family"], listed),
    }  # fmt: skip
    if last is None:
        connection.execute(insert(configs).values(row | {"name": new.name, "created_at": new.at, "row": ""}))
    put(connection, new.name, row)
    changed(connection)


def delete_documents(connection: Connection, deletion: Version) -> None:
    """Add the version that records a deletion, and remove the document from the list."""
    _insert(connection, deletion)
    links = connection.execute(select(C.links).where(C.name == deletion.name)).scalar()
    row = {
        "links": json.dumps({key: link for key, link in json.loads(links or "{}").items() if key != "entry"}),
        "version": deletion.number,
        "release": None,
        "deleted_at": deletion.at,
        "updated_at": deletion.at,
        "state": deletion.state,
    }
    put(connection, deletion.name, row)
    changed(connection)


def _versions(name: str) -> Select[Any]:
    return select(*VERSION).where(V.name == name).order_by(V.number.desc())


def _read(connection: Connection, query: Select[Any]) -> list[Version]:
    """Return the versions of a query with their receipts."""
    rows = connection.execute(query).mappings().all()
    texts = receipt_texts(connection, [row["receipt_hash"] for row in rows])
    return [
        Version(
            **{key: value for key, value in row.items() if key != "receipt_hash"},
            receipt=None if row["receipt_hash"] is None else texts.get(row["receipt_hash"], ""),
        )
        for row in rows
    ]


def _insert(connection: Connection, new: Version) -> None:
    row = {f.name: getattr(new, f.name) for f in fields(new) if f.name != "receipt"}
    stored = None if new.receipt is None else put_receipt(connection, new.receipt)
    connection.execute(insert(versions).values(**row, receipt_hash=stored))
