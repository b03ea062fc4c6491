"""Documents and their versions as rows: lists, counts, and one more version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select, tuple_, update

from importer.storage import list_columns, receipts
from importer.storage.change_counter import changed
from importer.storage.document_filters import Filters, Value, conditions, order
from importer.storage.tables import configs, versions

T, V = configs.c, versions.c


@dataclass(frozen=True, slots=True)
class Summary:
    """A document in a list; ``release`` is the number that is served.

    ``reason`` is why the working copy is not published. The fields from ``description`` on are of its card.
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
    description: str | None
    license: str | None
    tags: str | None
    quantization: str | None
    modalities: str | None
    tool_parser: str | None
    reasoning_parser: str | None
    context: int | None
    parameters: int | None
    size: str | None
    weights: int | None
    memory: int | None
    device: str | None
    devices: int | None
    run_engine: str | None
    run_version: str | None
    run_at: str | None
    run_passed: int | None
    run_failed: int | None
    run_total: int | None
    run_seconds: float | None
    checked_at: str | None
    attention: str | None
    findings: int
    urgency: int


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


SUMMARY = [T[f.name] for f in fields(Summary)]
VERSION = [V[f.name] for f in fields(Version) if f.name != "receipt"] + [V.receipt_hash]


def page(
    connection: Connection, filters: Filters, limit: int, after: Sequence[Value] = (), sort: str = "name"
) -> list[Summary]:
    """Return documents by a sort and then by name, with ``-`` the last first, those behind ``after``."""
    chosen, descends = order(sort), sort.startswith("-")
    columns = [T.name] if chosen is None else [chosen.column, T.name]
    query = select(T.name).where(*conditions(filters))
    if after:
        place, here = tuple_(*columns), tuple_(*after)
        query = query.where(place < here if descends else place > here)
    ordered = [one.desc() if descends else one for one in columns]
    # The names come from an index alone; only the rows of the page are read.
    chosen_names = [*connection.execute(query.order_by(*ordered).limit(limit)).scalars()]
    rows = connection.execute(select(*SUMMARY).where(T.name.in_(chosen_names))).mappings()
    found = {row["name"]: Summary(**row) for row in rows}
    return [found[name] for name in chosen_names]


def names(connection: Connection, filters: Filters) -> list[str]:
    """Return the names of all documents that a filter leaves."""
    query = select(T.name).where(*conditions(filters)).order_by(T.name)
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
    """Add a version, and the columns of the list that follow from it: all but those of its version."""
    _insert(connection, new)
    seen = connection.execute(select(T.checked_at).where(T.name == new.name)).scalar()
    checked = max((at for at in (seen, listed["checked_at"]) if at), default=None)
    row = {
        **listed, "checked_at": checked, "version": new.number, "digest": new.digest, "state": new.state,
        "updated_at": new.at, "deleted_at": None,
        "search": list_columns.search(new.name, listed["model"], listed["family"], listed),
    }  # fmt: skip
    if connection.execute(update(configs).where(T.name == new.name).values(row)).rowcount == 0:
        connection.execute(insert(configs).values(row | {"name": new.name, "created_at": new.at}))
    list_columns.attend(connection, new.name)
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
