"""The gallery: every version of every document as files, and the transactions that change them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, fields, replace
from pathlib import Path
from typing import NoReturn

from sqlalchemy import Connection

from importer.app.overview import publication_state
from importer.config import now
from importer.document.document import Document
from importer.document.document_keys import digest
from importer.document.receipt import Receipt
from importer.document.receipt import parse as parse_receipt
from importer.document.store import Store, StoredDocument, StoreReason, receipt_path
from importer.document.template_file import ChatTemplate, ChatTemplateReason, named, named_template
from importer.document.template_file import place as template_path
from importer.errors import DocumentError, ServiceError
from importer.frozen import frozen
from importer.reasons import Reason
from importer.service.domain.listing import columns, shown
from importer.storage import audit, document_rows, documents, releases
from importer.storage.audit import AuditContext
from importer.storage.database import Database
from importer.storage.document_rows import Summary
from importer.storage.documents import CountCache, Facets, Filters, Listed, Room, Shown, Value, Version
from importer.version import __version__


def intact(data: str, known: str) -> Document | None:
    """Return the data of a row; ``None`` where they have not the digest that the row has."""
    try:
        found: Document = json.loads(data)
        return found if digest(found) == known else None
    except ValueError:
        return None


class DocumentVersion(Version):
    """A version with its parsed document."""

    __slots__ = ()

    @classmethod
    def of(cls, row: Version) -> DocumentVersion:
        """Return the version of a row."""
        return cls(**{f.name: getattr(row, f.name) for f in fields(row)})

    @property
    def document(self) -> Document:
        """Return the data; those of the text where the row's are damaged. Raises DocumentError: "no-receipt",
        "invalid".
        """
        if (data := intact(self.data, self.digest)) is not None:
            return data
        from importer.document.yaml_edit.source_map import read

        path = Path(f"{self.name}.yaml")
        data = read(self.text, path)
        if digest(data) != self.digest:
            raise DocumentError("no-receipt", path=path, problem=Reason(StoreReason.DAMAGED))
        return data

    @property
    def stored(self) -> StoredDocument:
        """Return the document; its path is only a name, without a file.

        Raises DocumentError: "no-receipt" for a damaged row, "invalid".
        """
        path, data = Path(f"{self.name}.yaml"), self.document
        try:
            given = None if self.receipt is None else json.loads(self.receipt)
            receipt = None if given is None else parse_receipt(given, f"{self.name}.receipt.json")
        except (ValueError, TypeError):
            raise DocumentError("no-receipt", path=path, problem=Reason(StoreReason.DAMAGED)) from None
        return StoredDocument(path, self.text, data, self.digest, receipt, own=True)

    def chat_template(self, data: Document) -> ChatTemplate | None:
        """Return the template that its data name.

        Raises DocumentError("chat-template") where the version has another one.
        """
        if not named(data):
            return None
        path = Path(f"{self.name}.yaml")
        if named_template(data, self.template) is None or self.template is None:
            raise DocumentError(
                "chat-template",
                path=path,
                problem=Reason(ChatTemplateReason.CHANGED, file=template_path(path).name),
            )
        return ChatTemplate(template_path(path), self.template)


@frozen
class StoredFiles:
    """A version's files; ``number`` is 0 where there is none."""

    number: int = 0
    text: str | None = None
    receipt: str | None = None
    template: str | None = None


@frozen
class Checkout(Store):
    """A store in a folder of its own, so that rules for files hold; documents are put there when needed."""

    fetch: Callable[[str], StoredFiles] = lambda _: StoredFiles()
    fetched: dict[str, StoredFiles] = field(default_factory=dict)

    def find(self, name: str) -> StoredDocument | None:
        """Return the document of the gallery, or its changed files here."""
        if name == Path(name).name and name not in self.fetched:
            self._put(name)
        found = Store.find(self, name)
        return None if found is None else replace(found, own=True)

    def amend(self, name: str, change: Callable[[Receipt], Receipt]) -> None:
        """Replace the receipt of a document that the gallery has."""
        self.find(name)
        Store.amend(self, name, change)

    def receipt_texts(self, path: Path, receipt: Receipt) -> dict[Path, str]:
        """Return the whole receipt as one file, as a row of the database has it."""
        return {receipt_path(path): receipt.to_text()}

    def _put(self, name: str) -> None:
        files = self.fetched[name] = self.fetch(name)
        path = self.path(name)
        texts = {path: files.text, receipt_path(path): files.receipt, template_path(path): files.template}
        for file, content in texts.items():
            if content is not None:
                file.write_bytes(content.encode())

    def now(self, name: str) -> StoredFiles:
        """Return the document's files in this folder, with the number that they were fetched with."""
        path = self.path(name)
        files = (path, receipt_path(path), template_path(path))
        number = self.fetched[name].number if name in self.fetched else 0
        return StoredFiles(number, *(f.read_bytes().decode() if f.exists() else None for f in files))

    def changed(self) -> Iterator[str]:
        """Yield the names of documents that were written or removed here."""
        for name in sorted({*self.fetched, *self.names()}):
            if self.now(name) != self.fetched.get(name, StoredFiles()):
                yield name


class Change:
    """One transaction on the gallery: files in ``checkout``, other rows through ``connection``."""

    def __init__(self, connection: Connection, checkout: Checkout, context: AuditContext) -> None:
        self.connection, self.checkout, self.context = connection, checkout, context
        self._saved: dict[str, int] = {}

    def expect(self, name: str, numbers: Sequence[int] | None) -> StoredDocument:
        """Return the document, if its version is one of ``numbers``; ``None`` takes any.

        Raises DocumentError("no-such-document") and ServiceError("precondition-failed").
        """
        stored = self.checkout.load(name)
        check_version(name, self.checkout.fetched[name].number, numbers)
        return stored

    def save(self, name: str, *, always: bool = False) -> Summary:
        """Save the document's files as a new version where they changed; return its row.

        ``always`` makes a version of unchanged files, too: what is served of them has changed.
        """
        if always or self.checkout.now(name) != self.checkout.fetched.get(name, StoredFiles()):
            self._saved[name] = _save(self.connection, self.checkout, name, self.context)
            self.checkout.fetched[name] = replace(self.checkout.now(name), number=self._saved[name])
        return _summary(self.connection, name)

    def shown(self, name: str) -> Shown:
        """Return a saved document with what its answer shows."""
        return _shown(self.connection, name)

    def wrote(self, name: str) -> bool:
        """Return whether the document has a new version."""
        return name in self._saved

    def remove(self, name: str) -> None:
        """Take the document and its entry out of the gallery; its versions stay."""
        last, at = documents.newest(self.connection, name), now()
        context = self.context
        deleted = replace(
            last, number=last.number + 1, action=context.action, state="deleted", by=context.who, at=at,
            why=context.why,
        )  # fmt: skip
        documents.delete_documents(self.connection, deleted)
        releases.remove(self.connection, name)
        audit.record(self.connection, context, name, {"version": deleted.number})


def check_version(name: str, have: int, numbers: Sequence[int] | None) -> None:
    """Raise ServiceError("precondition-failed") unless ``have`` is one of ``numbers``; ``None``: any."""
    if numbers is not None and have not in numbers:
        raise ServiceError("precondition-failed", name=name, version=have)


class Gallery:
    """All documents with all their versions."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._counts = CountCache()

    def page(
        self, filters: Filters, limit: int, after: Sequence[Value] = (), sort: str = "name"
    ) -> tuple[list[Listed], int]:
        """Return documents in an order, those behind ``after``, and how many a list has in all."""
        with self.database.reading() as connection:
            rows = documents.page(connection, filters, limit, after, sort)
            return rows, self._counts.count(connection, filters)

    def facets(self, filters: Filters, room: Room | None) -> Facets:
        """Return how many documents each value of each facet leaves under the other filters."""
        with self.database.reading() as connection:
            return self._counts.facets(connection, filters, room)

    def get(self, name: str) -> tuple[Summary, DocumentVersion]:
        """Return a document and its newest version; raises DocumentError("no-such-document")."""
        with self.database.reading() as connection:
            return _summary(connection, name), DocumentVersion.of(documents.newest(connection, name))

    def shown(self, name: str) -> Shown:
        """Return a document with what its answer shows; raises DocumentError("no-such-document")."""
        with self.database.reading() as connection:
            return _shown(connection, name)

    def history(
        self, name: str, limit: int, before: int | None = None
    ) -> tuple[list[DocumentVersion], DocumentVersion, int, int | None]:
        """Return versions before a number, the newest first; the newest of all, how many there are, and the
        number of the one that is served.

        Raises DocumentError("no-such-document").
        """
        with self.database.reading() as connection:
            total = documents.count_versions(connection, name)
            if not total:
                raise DocumentError("no-such-document", name=name, folder="the gallery")
            rows = documents.history(connection, name, limit, before)
            newest = rows[0] if before is None else documents.newest(connection, name)
            served = releases.served(connection, name)
        found, number = [DocumentVersion.of(row) for row in rows], None if served is None else served.version
        return found, DocumentVersion.of(newest), total, number

    def version(self, name: str, number: int) -> DocumentVersion:
        """Return one version; raises ServiceError("no-such-version")."""
        with self.database.reading() as connection:
            row = documents.version(connection, name, number)
        if row is None:
            raise ServiceError("no-such-version", name=name, number=number)
        return DocumentVersion.of(row)

    @contextmanager
    def change(self, context: AuditContext) -> Iterator[Change]:
        """Open a transaction for one person's change: every changed file is a new version at its end.

        An error in the block discards all changes.
        """
        temporary = tempfile.TemporaryDirectory(prefix="importer-gallery-")
        with temporary as folder, self.database.writing() as connection:
            self.database.alone(connection)
            checkout = Checkout(Path(folder), fetch=lambda name: _newest_files(connection, name))
            try:
                change = Change(connection, checkout, context)
                yield change
                for name in [*checkout.changed()]:
                    change.save(name)
            except DocumentError as error:
                _without_folder(error, checkout.folder)

    @contextmanager
    def checkout(self) -> Iterator[Checkout]:
        """Yield the documents as files for reading; changes are discarded."""
        with tempfile.TemporaryDirectory(prefix="importer-gallery-") as folder:
            checkout = Checkout(Path(folder), fetch=self._fetch)
            try:
                yield checkout
            except DocumentError as error:
                _without_folder(error, checkout.folder)

    def _fetch(self, name: str) -> StoredFiles:
        with self.database.reading() as connection:
            return _newest_files(connection, name)


def _summary(connection: Connection, name: str) -> Summary:
    row = document_rows.summary(connection, name)
    if row is None:
        raise DocumentError("no-such-document", name=name, folder="the gallery")
    return row


def _shown(connection: Connection, name: str) -> Shown:
    """Return a document with what its answer shows, rendered anew where another importer did so.

    Raises DocumentError: "no-such-document", and "no-receipt" or "invalid" for damaged data.
    """
    found = documents.shown(connection, name)
    if found is None:
        raise DocumentError("no-such-document", name=name, folder="the gallery")
    whole = intact(found.data, found.digest) is not None
    if whole and found.shown_by == __version__:
        return found
    stored = DocumentVersion.of(documents.newest(connection, name)).stored
    data = found.data if whole else json.dumps(stored.data, ensure_ascii=False)
    return replace(found, data=data, shown=shown(stored))


def _newest_files(connection: Connection, name: str) -> StoredFiles:
    if document_rows.summary(connection, name) is None:
        return StoredFiles(documents.last_number(connection, name))
    last = documents.newest(connection, name)
    return StoredFiles(last.number, last.text, last.receipt, last.template)


def _save(connection: Connection, checkout: Checkout, name: str, context: AuditContext) -> int:
    """Add a version of what lies in the checkout; return its number."""
    stored, files, at = checkout.load(name), checkout.now(name), now()
    served = releases.served(connection, name)
    state = publication_state(stored, None if served is None else served.digest)
    number = files.number + 1
    new = Version(
        name=name, number=number, action=context.action, text=str(files.text),
        data=json.dumps(stored.data, ensure_ascii=False), receipt=files.receipt, template=files.template,
        digest=stored.digest, state=state.state, by=context.who, at=at, why=context.why,
    )  # fmt: skip
    release = None if served is None else served.version
    documents.add(connection, new, columns(stored, state, release))
    audit.record(
        connection, context, name, {"version": number, "digest": stored.digest, "state": state.state}
    )
    return number


def _without_folder(error: DocumentError, folder: Path) -> NoReturn:
    """Raise the same error with names of documents in place of temporary paths."""
    details = {
        key: value.relative_to(folder) if isinstance(value, Path) and value.is_relative_to(folder) else value
        for key, value in error.details.items()
    }
    details["folder"] = "the gallery" if details.get("folder") in (folder, Path()) else details.get("folder")
    raise error.but(**details) from None
