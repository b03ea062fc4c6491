"""The gallery in the database: what it has, and how that changes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, insert, select, update

from importer.app.import_ import now
from importer.config_file.store import StoredDocument
from importer.errors import DocumentError, ServiceError
from importer.gallery import audit, published, tables
from importer.gallery.act import Act
from importer.gallery.checkout import Checkout, Kept, without_folder
from importer.gallery.counting import Counts, changed, marked
from importer.gallery.database import Database
from importer.gallery.entry import Summary, Version
from importer.gallery.standing import standing
from importer.messages import render

T = tables.configs.c
V = tables.versions.c
SUMMARY = [T[f.name] for f in fields(Summary)]
VERSION = [V[f.name] for f in fields(Version)]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents a list is to have; ``q`` is part of a name, model or family."""

    state: Sequence[str] = ()
    family: str | None = None
    backend: str | None = None
    q: str | None = None


class Change:
    """One transaction on the gallery: files in ``checkout``, other rows through ``connection``."""

    def __init__(self, connection: Connection, checkout: Checkout, act: Act) -> None:
        self.connection, self.checkout, self.act = connection, checkout, act
        self._saved: dict[str, int] = {}

    def expect(self, name: str, numbers: Sequence[int] | None) -> StoredDocument:
        """The document, if its version is one of ``numbers``; ``None`` takes any.

        Raises DocumentError("no-such-document") and ServiceError("precondition-failed").
        """
        stored = self.checkout.load(name)
        check_version(name, self.checkout.fetched[name].number, numbers)
        return stored

    def save(self, name: str) -> Summary:
        """The document as it is in the gallery then; a new version where it was written."""
        if self.checkout.now(name) != self.checkout.fetched.get(name, Kept()):
            self._saved[name] = _save(self.connection, self.checkout, name, self.act)
            self.checkout.fetched[name] = replace(self.checkout.now(name), number=self._saved[name])
        row = self.connection.execute(select(*SUMMARY).where(T.name == name)).mappings().one()
        return Summary(**row)

    def wrote(self, name: str) -> bool:
        """Whether the document has a new version."""
        return name in self._saved

    def remove(self, name: str) -> None:
        """Take the document out of the gallery; its versions stay."""
        connection, at = self.connection, now()
        last = _version(connection, name)
        gone = asdict(last) | {
            "number": last.number + 1, "action": self.act.action, "state": "deleted",
            "by": self.act.who, "at": at, "why": self.act.why,
        }  # fmt: skip
        connection.execute(insert(tables.versions).values(gone))
        row = {"version": last.number + 1, "deleted_at": at, "updated_at": at, "state": "deleted"}
        connection.execute(update(tables.configs).where(T.name == name).values(row))
        published.put(connection, name, 0, None, at)
        changed(connection)
        audit.record(connection, self.act, name, {"version": last.number + 1})


def check_version(name: str, have: int, numbers: Sequence[int] | None) -> None:
    """Raises ServiceError("precondition-failed") unless ``have`` is one of ``numbers``; ``None``: any."""
    if numbers is not None and have not in numbers:
        raise ServiceError("precondition-failed", name=name, version=have)


class Gallery:
    """All documents with all their versions."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._counts = Counts()

    def page(self, filters: Filters, limit: int, after: str = "") -> list[Summary]:
        """Documents by name, those behind ``after``."""
        query = select(*SUMMARY).where(T.deleted_at.is_(None), T.name > after, *_wanted(filters))
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(T.name).limit(limit)).mappings()
            return [Summary(**row) for row in rows]

    def count(self, filters: Filters) -> int:
        """How many documents a list has in all."""
        every = select(func.count()).select_from(tables.configs)
        query = every.where(T.deleted_at.is_(None), *_wanted(filters))
        key = (tuple(filters.state), filters.family, filters.backend, filters.q)
        with self.database.reading() as connection:
            return self._counts.get(key, marked(connection), lambda: connection.execute(query).scalar_one())

    def get(self, name: str) -> tuple[Summary, Version]:
        """A document and its newest version; raises DocumentError("no-such-document")."""
        query = select(*SUMMARY).where(T.name == name, T.deleted_at.is_(None))
        with self.database.reading() as connection:
            row = connection.execute(query).mappings().first()
            if row is None:
                raise DocumentError("no-such-document", name=name, folder="the gallery")
            return Summary(**row), _version(connection, name)

    def versions(self, name: str) -> list[Version]:
        """Every version, the newest first; raises DocumentError("no-such-document")."""
        with self.database.reading() as connection:
            rows = connection.execute(_newest(name)).mappings().all()
        if not rows:
            raise DocumentError("no-such-document", name=name, folder="the gallery")
        return [Version(**row) for row in rows]

    def version(self, name: str, number: int) -> Version:
        """One version; raises ServiceError("no-such-version")."""
        with self.database.reading() as connection:
            row = connection.execute(_newest(name).where(V.number == number)).mappings().first()
        if row is None:
            raise ServiceError("no-such-version", name=name, number=number)
        return Version(**row)

    @contextmanager
    def change(self, act: Act) -> Iterator[Change]:
        """One change by one person: what is different in the checkout afterwards is a new version.

        Nothing is kept where the block raises.
        """
        with tempfile.TemporaryDirectory(prefix="importer-gallery-") as folder, self._writing() as connection:
            checkout = Checkout(Path(folder), fetch=lambda name: _kept(connection, name))
            try:
                change = Change(connection, checkout, act)
                yield change
                for name in [*checkout.changed()]:
                    change.save(name)
            except DocumentError as error:
                without_folder(error, checkout.folder)

    @contextmanager
    def checkout(self) -> Iterator[Checkout]:
        """The documents as files, to look at: what is written there is forgotten."""
        with tempfile.TemporaryDirectory(prefix="importer-gallery-") as folder:
            checkout = Checkout(Path(folder), fetch=self._fetch)
            try:
                yield checkout
            except DocumentError as error:
                without_folder(error, checkout.folder)

    def _fetch(self, name: str) -> Kept:
        with self.database.reading() as connection:
            return _kept(connection, name)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self.database.writing() as connection:
            self.database.alone(connection)
            yield connection


def _newest(name: str) -> Select[Any]:
    return select(*VERSION).where(V.name == name).order_by(V.number.desc())


def _version(connection: Connection, name: str) -> Version:
    return Version(**connection.execute(_newest(name).limit(1)).mappings().one())


def _kept(connection: Connection, name: str) -> Kept:
    there = connection.execute(select(T.version, T.deleted_at).where(T.name == name)).first()
    if there is None or there.deleted_at is not None:
        return Kept(0 if there is None else there.version)
    found = _version(connection, name)
    return Kept(found.number, found.text, found.receipt, found.template)


def _wanted(filters: Filters) -> Iterator[ColumnElement[bool]]:
    if filters.state:
        yield T.state.in_(filters.state)
    for column, value in ((T.family, filters.family), (T.backend, filters.backend)):
        if value is not None:
            yield column == value
    if filters.q:
        yield T.search.contains(filters.q.lower(), autoescape=True)


def _save(connection: Connection, checkout: Checkout, name: str, act: Act) -> int:
    """One more version, and the row of the list that follows from it; its number."""
    stored, files, at = checkout.load(name), checkout.now(name), now()
    found, number = standing(stored), files.number + 1
    connection.execute(
        insert(tables.versions).values(
            name=name, number=number, action=act.action, text=files.text,
            data=json.dumps(stored.data, ensure_ascii=False), receipt=files.receipt,
            template=files.template, digest=stored.digest, state=found.state, by=act.who, at=at, why=act.why,
        )
    )  # fmt: skip
    about = _about(stored)
    row = about | {
        "version": number, "digest": stored.digest, "model": stored.model, "backend": stored.backend,
        "state": found.state, "review": found.review, "validation": found.validation,
        "reason": None if found.reason is None else render(found.reason),
        "updated_at": at, "deleted_at": None,
        "search": "\n".join(filter(None, (name, stored.model, about["family"]))).lower(),
    }  # fmt: skip
    if connection.execute(update(tables.configs).where(T.name == name).values(row)).rowcount == 0:
        connection.execute(insert(tables.configs).values(row | {"name": name, "created_at": at}))
    published.put(connection, name, number, found.entry, at)
    changed(connection)
    details = {"version": number, "digest": stored.digest, "state": found.state}
    audit.record(connection, act, name, details)
    return number


def _about(stored: StoredDocument) -> dict[str, Any]:
    block = stored.data.get("importer")
    said: Mapping[str, Any] = block if isinstance(block, Mapping) else {}
    return {key: said.get(key) for key in ("revision", "family")} | {"kind": said.get("kind", "chat")}
