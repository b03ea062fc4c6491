"""A folder that holds what the gallery has: all rules for files on disk hold for the gallery as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from importer.config_file import template_file
from importer.config_file.receipt import Receipt
from importer.config_file.store import Store, StoredDocument, receipt_path
from importer.errors import DocumentError


@dataclass(frozen=True, slots=True)
class Kept:
    """A version's files; ``number`` is 0 where there is none."""

    number: int = 0
    text: str | None = None
    receipt: str | None = None
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Checkout(Store):
    """A store in a folder of its own; a document is put there when it is first asked for."""

    fetch: Callable[[str], Kept] = lambda _: Kept()
    fetched: dict[str, Kept] = field(default_factory=dict)

    def find(self, name: str) -> StoredDocument | None:
        """The document as the gallery has it, or as it was written here since."""
        if name == Path(name).name and name not in self.fetched:
            self._put(name)
        return Store.find(self, name)

    def amend(self, name: str, change: Callable[[Receipt], Receipt]) -> None:
        """Replace the receipt of a document that the gallery has."""
        self.find(name)
        Store.amend(self, name, change)

    def _put(self, name: str) -> None:
        kept = self.fetched[name] = self.fetch(name)
        path = self.path(name)
        files = {path: kept.text, receipt_path(path): kept.receipt, template_file.place(path): kept.template}
        for file, text in files.items():
            if text is not None:
                file.write_bytes(text.encode())

    def now(self, name: str) -> Kept:
        """The document's files as they lie here now, under the number they were fetched with."""
        path = self.path(name)
        files = (path, receipt_path(path), template_file.place(path))
        number = self.fetched[name].number if name in self.fetched else 0
        return Kept(number, *(f.read_bytes().decode() if f.exists() else None for f in files))

    def changed(self) -> Iterator[str]:
        """The names of documents that were written or taken away here."""
        for name in sorted({*self.fetched, *self.names()}):
            if self.now(name) != self.fetched.get(name, Kept()):
                yield name


def without_folder(error: DocumentError, folder: Path) -> NoReturn:
    """Raise the same error naming documents as the gallery does, not where they lay for a moment."""
    told = {
        key: value.relative_to(folder) if isinstance(value, Path) and value.is_relative_to(folder) else value
        for key, value in error.details.items()
    }
    told["folder"] = "the gallery" if told.get("folder") in (folder, Path()) else told.get("folder")
    raise error.but(**told) from None
