"""Releases as rows: versions of a document that were released, what is served of them, what is withdrawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select, update

from importer.storage import published, receipts, tables

R = tables.releases.c


@dataclass(frozen=True, slots=True)
class ReleaseEntry:
    """What LocalAI is shown of a release, as it was rendered, and what that lacks: effect, kind, message."""

    item: str
    file: str
    about: Mapping[str, Any]
    lost: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
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
    number = published.release(connection, name)
    return None if number is None else get(connection, name, number)


def receipt(connection: Connection, release: Release) -> str | None:
    """Return the text of a release's receipt."""
    found = receipts.texts(connection, [release.receipt_hash])
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
    published.put(connection, release.name, release.number, release.version, release.entry, at)


def withdraw(
    connection: Connection, name: str, numbers: Sequence[int] | None, by: str, at: str, why: str | None
) -> bool:
    """Mark releases as withdrawn, ``None`` all of them; return whether one of them was served till now."""
    chosen = [R.name == name, R.withdrawn_at.is_(None)]
    if numbers is not None:
        chosen.append(R.number.in_(numbers))
    row = {"withdrawn_by": by, "withdrawn_at": at, "withdrawn_why": why}
    connection.execute(update(tables.releases).where(*chosen).values(row))
    number = published.release(connection, name)
    if number is None or not (numbers is None or number in numbers):
        return False
    return published.remove(connection, name)


def _of(name: str) -> Select[Any]:
    return select(*COLUMNS).where(R.name == name)


def _read(row: Mapping[Any, Any]) -> Release:
    return Release(**{**row, "entry": ReleaseEntry(**json.loads(row["entry"]))})
