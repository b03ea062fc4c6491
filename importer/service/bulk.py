"""One action on many documents or findings: each alone, with a result of its own, or only tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from importer.config import now
from importer.config_file.merge import Take
from importer.config_file.receipt import ReviewEntry
from importer.config_file.review import record_review
from importer.errors import ImporterError, ServiceError
from importer.service import upkeep, validations
from importer.service.gallery import Change, Gallery
from importer.service.releases import promote, ready
from importer.service.security.grants import Caller
from importer.storage import audit, documents
from importer.storage.audit import AuditContext
from importer.storage.documents import Summary


class _Discarded(Exception):
    """Ends a transaction that was only tried."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """A document with the digest that was seen, or a finding."""

    name: str | None = None
    digest: str | None = None
    finding: str | None = None


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The result of one item: the document afterwards, its job, or why nothing was done."""

    item: BulkItem
    name: str | None
    summary: Summary | None = None
    job: str | None = None
    merged: bool = False
    error: ImporterError | None = None


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """What all items have in common."""

    note: str | None
    take: Take | None
    publish: bool
    dry_run: bool


class Bulk:
    """One request of one caller; an item that fails leaves the others as they are."""

    def __init__(self, gallery: Gallery, who: Caller, context: AuditContext, options: BulkOptions) -> None:
        self._gallery, self._who, self._context, self._options = gallery, who, context, options

    @property
    def actions(self) -> Mapping[str, Callable[[BulkItem], BulkResult]]:
        """Return the actions on one item by name; a recheck is one job for all."""
        return {
            "approve": self._approve, "reject": self._reject, "validate": self._validate,
            "accept": self._accept, "dismiss": self._dismiss,
        }  # fmt: skip

    def run(self, action: str, item: BulkItem) -> BulkResult:
        """Return the result of an item."""
        try:
            return self.actions[action](item)
        except ImporterError as error:
            return BulkResult(item, item.name, error=error)

    def _approve(self, item: BulkItem) -> BulkResult:
        if item.digest is None:
            raise ServiceError("digest-required", name=item.name)
        if self._options.publish:
            self._who.needs("publish")
        return self._reviewed(item, "approved")

    def _reject(self, item: BulkItem) -> BulkResult:
        return self._reviewed(item, "rejected")

    def _reviewed(self, item: BulkItem, state: Any) -> BulkResult:
        name, note = str(item.name), self._options.note
        with self._changing() as change:
            change.expect(name, None)
            word = ReviewEntry(state, self._who.name, now(), note)
            record_review(change.checkout, name, word, item.digest)
            if state == "approved" and self._options.publish and ready(change, name):
                promote(change, name, note)
            return BulkResult(item, name, change.save(name))

    def _accept(self, item: BulkItem) -> BulkResult:
        with self._changing() as change:
            row, found = upkeep.accept(change, str(item.finding), self._options.take, self._who)
            return BulkResult(item, found.name, row)

    def _dismiss(self, item: BulkItem) -> BulkResult:
        with self._writing() as connection:
            found = upkeep.reject(connection, str(item.finding), self._who.name, self._options.note)
            audit.record(connection, self._context, found.name, {"finding": found.id})
            return BulkResult(item, found.name, documents.summary(connection, found.name))

    def _validate(self, item: BulkItem) -> BulkResult:
        wanted = validations.order(self._gallery, str(item.name), None, fetch=True)
        with self._writing() as connection:
            job, new = validations.ask(connection, wanted, self._who.name)
            audit.record(connection, self._context, f"job {job.id}", wanted.request)
            row = documents.summary(connection, wanted.name)
            known = None if new and self._options.dry_run else job.id
            return BulkResult(item, wanted.name, row, known, not new)

    @contextmanager
    def _changing(self) -> Iterator[Change]:
        try:
            with self._gallery.change(self._context) as change:
                yield change
                self._end()
        except _Discarded:
            pass

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with self._gallery.database.writing() as connection:
                self._gallery.database.alone(connection)
                yield connection
                self._end()
        except _Discarded:
            pass

    def _end(self) -> None:
        if self._options.dry_run:
            raise _Discarded
