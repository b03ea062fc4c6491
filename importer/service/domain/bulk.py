"""One action on many documents or findings: each alone, with a result of its own, or only tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from importer.config import now
from importer.config_file.merge import Take
from importer.config_file.receipt import ReviewEntry
from importer.config_file.review import record_review
from importer.config_file.store import StoredDocument
from importer.errors import DocumentError, ImporterError, ServiceError
from importer.frozen import frozen
from importer.service.domain import upkeep, validations
from importer.service.domain.gallery import Change, Gallery
from importer.service.domain.grants import Caller, admitted
from importer.service.domain.import_request import Import
from importer.service.domain.releases import promote, ready, undelete, withdraw
from importer.service.settings import Settings
from importer.storage import audit, documents, jobs, releases
from importer.storage.audit import AuditContext
from importer.storage.documents import Summary


class _Discarded(Exception):
    """Ends a transaction that was only tried."""


@frozen
class BulkItem:
    """A document with the digest that was seen, or a finding."""

    name: str | None = None
    digest: str | None = None
    finding: str | None = None


@frozen
class BulkResult:
    """The result of one item: the document afterwards, its job, or why nothing was done."""

    item: BulkItem
    name: str | None
    summary: Summary | None = None
    job: str | None = None
    merged: bool = False
    error: ImporterError | None = None


@frozen
class BulkOptions:
    """What all items have in common."""

    note: str | None
    take: Take | None
    publish: bool
    dry_run: bool


def again(stored: StoredDocument, take: Take | None, note: str | None) -> dict[str, object]:
    """Return the request of an import that asks for a document once more; settings of before still count.

    Raises DocumentError("no-receipt").
    """
    receipt = stored.need_receipt()
    asked = receipt.request
    kept = {key: asked.get(key) for key in ("revision", "device", "per_device")}
    if (memory := asked.get("memory")) is not None:
        kept["memory"] = f"{memory / 1024}K"  # a body has a text
    whole = {
        "reference": receipt.directory or asked.get("reference") or receipt.reference, "name": stored.name,
        "backend": stored.backend, **kept, "take": take, "note": note,
    }  # fmt: skip
    return {key: value for key, value in whole.items() if value not in (None, False)}


class Bulk:
    """One request of one caller; an item that fails leaves the others as they are."""

    def __init__(
        self, gallery: Gallery, settings: Settings, who: Caller, context: AuditContext, options: BulkOptions
    ) -> None:
        self._gallery, self._settings = gallery, settings
        self._who, self._context, self._options = who, context, options

    @property
    def actions(self) -> Mapping[str, Callable[[BulkItem], BulkResult]]:
        """Return the actions on one item by name; a recheck is one job for all."""
        return {
            "approve": self._approve, "reject": self._reject, "validate": self._validate,
            "accept": self._accept, "dismiss": self._dismiss, "release": self._release,
            "withdraw": self._withdraw, "delete": self._delete, "undelete": self._undelete,
            "reimport": self._reimport,
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
            row, found = upkeep.accept(
                change, str(item.finding), self._options.take, self._who, self._settings
            )
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

    def _release(self, item: BulkItem) -> BulkResult:
        with self._changing() as change:
            self._seen(change, item)
            summary, _, _ = promote(change, str(item.name), self._options.note)
            return BulkResult(item, item.name, summary)

    def _withdraw(self, item: BulkItem) -> BulkResult:
        with self._changing() as change:
            name = str(item.name)
            change.expect(name, None)
            served = releases.served(change.connection, name)
            if served is None:
                raise ServiceError("no-such-release", name=name, number="served")
            summary, _ = withdraw(change, name, served.number, self._options.note)
            return BulkResult(item, name, summary)

    def _delete(self, item: BulkItem) -> BulkResult:
        with self._changing() as change:
            self._seen(change, item)
            if releases.release(change.connection, str(item.name)) is not None:
                self._who.needs("publish")
            change.remove(str(item.name))
            return BulkResult(item, item.name)

    def _undelete(self, item: BulkItem) -> BulkResult:
        with self._changing() as change:
            return BulkResult(item, item.name, undelete(change, str(item.name)))

    def _reimport(self, item: BulkItem) -> BulkResult:
        name = str(item.name)
        row, version = self._gallery.get(name)
        request = again(version.stored, self._options.take, self._options.note)
        admitted(Import.model_validate(request), self._who, self._settings)
        with self._writing() as connection:
            job = jobs.create(connection, "import", request, self._who.name, config=name)
            audit.record(connection, self._context, f"job {job.id}", {"imports": 1})
            return BulkResult(item, name, row, None if self._options.dry_run else job.id)

    def _seen(self, change: Change, item: BulkItem) -> None:
        """Raise what refuses an item without a digest, or with that of other data than the present ones."""
        name = str(item.name)
        if item.digest is None:
            raise ServiceError("digest-required", name=name)
        stored = change.expect(name, None)
        if stored.digest != item.digest:
            raise DocumentError("changed", path=stored.path, name=name, now=stored.digest, seen=item.digest)

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
