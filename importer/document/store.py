"""A folder of documents, ``<name>.yaml`` beside the files of its receipt, and atomic writes."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from importer import config
from importer.document import receipt_files, schema, template_file
from importer.document.build import SCHEMA_FILE
from importer.document.document import Document
from importer.document.document_keys import digest, engine_of
from importer.document.model_facts import RecordedFacts, recorded_facts
from importer.document.schema import checked
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.hub.folders import read_plain, why
from importer.hub.reference import is_directory
from importer.hub.snapshot import mapping, written
from importer.reasons import Reason, ReasonKind

if TYPE_CHECKING:
    from importer.document.receipt import Receipt


def write_all(contents: Mapping[Path, str]) -> None:
    """Write every file or none: all are written beside their places first, then renamed.

    Raises DocumentError("not-a-folder") and DocumentError("cannot-write").
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for path, text in contents.items():
            make_folder(path.parent)
            temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(6)}.part")
            staged.append((temporary, path))
            _fill(temporary, text.encode(), path)
        for temporary, path in staged:
            temporary.replace(path)
    except OSError as error:
        raise DocumentError("cannot-write", path=path, problem=error.strerror or error) from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create ``folder``; raises DocumentError where a file stands in its place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise DocumentError("not-a-folder", path=folder) from None
    except OSError as error:
        raise DocumentError("cannot-write", path=folder, problem=error.strerror or error) from None


def _fill(file: Path, content: bytes, path: Path) -> None:
    """Write a new file with the mode of the one that it replaces."""
    # The caller's umask decides who may read a new file: engines run under other users.
    mode = 0o777 if content.startswith(b"#!") else 0o666
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as opened:
        with suppress(OSError):  # a new file has no mode to keep
            os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
        opened.write(content)
        opened.flush()
        os.fsync(descriptor)


def commit(path: Path, contents: Mapping[Path, str]) -> None:
    """Write files of the document at ``path``, all or none even if the process is killed.

    They are written into a folder, and its new name commits them: whoever reads the document next moves what
    is left in it to its place, if the document is still the one to replace. Files of a receipt that were not
    read whole, or whose document is gone, are kept under other names. Where the document is a link, the file
    that it leads to is replaced. The caller holds the lock. Raises DocumentError("cannot-write").
    """
    finish(path)
    staging = file = path.with_name(f".{path.stem}.part")
    make_folder(path.parent)
    try:
        with suppress(FileNotFoundError):
            shutil.rmtree(staging)  # of a write that was killed
        staging.mkdir()
        (staging / REPLACES).write_text(_present(path))
        new = {file: text.encode() for file, text in contents.items()}
        for file, content in (new | _aside(path, new)).items():
            _check_place(_target(file, path), staging)
            _fill(staging / file.name, content, file)
        file = _committed(path)
        staging.rename(file)
    except OSError as error:
        raise DocumentError("cannot-write", path=file, problem=error.strerror or error) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    finish(path)


def _target(file: Path, document: Path) -> Path:
    """Return the place of a file: of a document that is a link, where it leads. No other link is followed."""
    return file.resolve() if file == document and file.exists() else file


def _check_place(place: Path, staging: Path) -> None:
    """Raise OSError where no file can be moved to a place."""
    same = place.parent.stat().st_dev == staging.stat().st_dev
    writable = os.access(place.parent, os.W_OK | os.X_OK)
    number = errno.EISDIR if place.is_dir() else errno.EXDEV if not same else 0 if writable else errno.EACCES
    if number:
        raise OSError(number, os.strerror(number))


def _committed(path: Path) -> Path:
    return path.with_name(f".{path.stem}{COMMITTED}")


def finish(path: Path) -> None:
    """Move the files of a committed write to their places; several processes may do that at a time.

    Where a person wrote the document meanwhile, theirs stays, and the rest of the write is dropped.
    """
    folder = _committed(path)
    if not os.path.lexists(folder) or folder.is_symlink():
        return
    with suppress(OSError):
        replaces = (folder / REPLACES).read_text()
        if _present(path) != replaces and (folder / path.name).exists():
            shutil.rmtree(folder)
            return
        for one in sorted(folder.iterdir()):
            if one.name.startswith(f"{path.stem}.") and not one.is_symlink():
                with suppress(FileNotFoundError):  # another process was faster
                    one.replace(_target(path.with_name(one.name), path))
        (folder / REPLACES).unlink(missing_ok=True)
        folder.rmdir()


def _present(path: Path) -> str:
    """Return the digest of a file's bytes, ``none`` without the file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return "none"


def _aside(document: Path, new: Mapping[Path, bytes]) -> dict[Path, bytes]:
    """Return what ``new`` files of a document would replace unread, under names of their own."""
    data, unread = _read(receipt_path(document))
    if data is None or not os.path.lexists(document):
        unread = [receipt_files.ENDING, receipt_files.SIDE]
    held = dict[str, bytes]()
    for ending in unread:
        file = document.with_name(document.stem + ending)
        try:
            content = read_plain(file, LONGEST_RECEIPT)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DocumentError("cannot-write", path=file, problem=why(error)) from None
        if new.get(file, content) != content:
            held[ending] = content
    number = hashlib.sha256(b"".join(held.values())).hexdigest()[:8]
    return {
        document.with_name(f"{document.stem}.{number}{ending}"): content for ending, content in held.items()
    }


COMMITTED = ".commit"  # ending of a folder with files that are written
REPLACES = "replaces"  # its file with the digest of the document that they replace
LONGEST = 16 * 1024 * 1024  # bytes of a document: a long one has ten thousand
LONGEST_RECEIPT = 256 * 1024 * 1024  # with the raw exchanges of its validations


Review = Literal["no receipt", "draft", "approved", "rejected", "stale"]
Invalid = Literal["invalid"]  # the review and the state of what nobody can judge; a service keeps none


def approval_record(digest: str) -> Path:
    """Return the file that records an approval by this user on this machine, where something is granted."""
    return config.home() / "approved" / digest.removeprefix("sha256:")


class StoreReason(ReasonKind):
    """Why a document's files cannot be used."""

    MISSING = "it is missing"
    DAMAGED = "it is damaged"
    NO_DETAILS = "{file} has no details of {parts:and}: it is missing, or of another receipt"


@frozen
class StoredDocument:
    """A document on disk: text, data and their digest, and its receipt if there is a readable one.

    ``own``     whether nobody else writes its receipt, as in the database of a service.
    ``misfit``  the error of data that do not fit the schema; a service writes none.
    """

    path: Path
    text: str
    data: Document
    digest: str
    receipt: Receipt | None
    own: bool = False
    misfit: DocumentError | None = None

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.stem

    @property
    def model(self) -> str | None:
        """Return the id or directory of the model: the receipt's, else the document's own."""
        if self.receipt is not None:
            return self.receipt.model_id or self.receipt.directory
        block, parameters = self.data.get("importer"), self.data.get("parameters")
        names = [block.get("model_id")] if isinstance(block, dict) else []
        names += [parameters.get("model")] if isinstance(parameters, dict) else []
        return next((s for s in names if isinstance(s, str)), None)

    @property
    def backend(self) -> str:
        """Return the engine that serves it, as ``engine_of`` does."""
        return engine_of(self.data)

    @property
    def device(self) -> str | None:
        """Return the device that its last import named."""
        return None if self.receipt is None else self.receipt.device

    @property
    def own_device(self) -> str | None:
        """Return the device of a document for this device alone; ``None`` for any other document."""
        return None if self.receipt is None else self.receipt.own_device

    @property
    def reference(self) -> str:
        """Return the reference of the model, absolute for a directory, which is relative to the file's
        folder.

        A name without a slash is a directory there, as LocalAI has it.
        """
        model = str(self.data["parameters"]["model"])
        if model.startswith("~") or not (is_directory(model) or "/" not in model):
            return model
        return str((self.path.parent / model).absolute())

    @property
    def facts(self) -> RecordedFacts | None:
        """Return the facts of the model that its import recorded."""
        return recorded_facts(self.receipt)

    def check(self) -> None:
        """Raise DocumentError: "invalid" with every problem and its line, or "chat-template"."""
        checked(self.text, self.path, self.facts)
        self.chat_template()

    def chat_template(self) -> template_file.ChatTemplate | None:
        """Return the template that is not the model's own; raises DocumentError("chat-template")."""
        return template_file.of(self.data, self.path)

    @property
    def no_details(self) -> Reason | None:
        """Return which parts of the receipt have no details in its side file; ``None`` for a whole one."""
        if self.receipt is None or not self.receipt.absent:
            return None
        file = receipt_files.side_path(receipt_path(self.path)).name
        return Reason(StoreReason.NO_DETAILS, file=file, parts=tuple(self.receipt.absent))

    @property
    def fault(self) -> DocumentError | None:
        """Return what makes it invalid: a damaged receipt, or data that do not fit; ``None`` in a service,
        which checks both itself.
        """
        try:
            if not self.own:
                self.check_receipt()
        except DocumentError as error:
            return error
        return self.misfit

    @property
    def review(self) -> Review | Invalid:
        """Return the review of the present data as it counts here: a draft where an approval came with the
        files, and an engine would be granted something by it.
        """
        from importer.document.grants import runs

        if self.fault is not None:
            return "invalid"
        if self.receipt is None:
            return "no receipt"
        said = self.receipt.state(self.digest)
        known = said != "approved" or self.own or not runs(self.data)
        return said if known or approval_record(self.digest).exists() else "draft"

    @property
    def approved(self) -> bool:
        """Return whether a person has approved the present data, as it counts here."""
        return self.review == "approved"

    def need_receipt(self) -> Receipt:
        """Return the receipt; raises DocumentError("no-receipt")."""
        self.check_receipt()
        if self.receipt is None:
            raise DocumentError("no-receipt", path=self.path, problem=Reason(StoreReason.MISSING))
        return self.receipt

    @property
    def damaged(self) -> bool:
        """Return whether it has a receipt that cannot be read."""
        return self.receipt is None and receipt_path(self.path).exists()

    def check_receipt(self) -> None:
        """Raise DocumentError("no-receipt") for a damaged one; a document may have none."""
        if self.damaged:
            raise DocumentError("no-receipt", path=self.path, problem=Reason(StoreReason.DAMAGED))


@frozen
class Store:
    """The documents in one folder."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return where the document ``name`` lies."""
        return self.folder / f"{name}.yaml"

    def load(self, name: str) -> StoredDocument:
        """Read a document and its receipt; raises DocumentError."""
        stored = self.find(name)
        if stored is None:
            raise DocumentError("no-such-document", name=name, folder=self.folder)
        return stored

    def find(self, name: str) -> StoredDocument | None:
        """Return the document; ``None`` without such a file in this very folder."""
        if name != Path(name).name:
            return None
        path = self.path(name)
        finish(path)
        # A loop of links is there, and cannot be read.
        loop = os.path.islink(path) and os.path.islink(os.path.realpath(path))  # noqa: PTH114 - never raises
        return load(path) if loop or os.path.exists(path) else None  # noqa: PTH110 - never raises

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock for one writer, so that a free name stays free until it is written.

        Raises DocumentError where the folder cannot be made.
        """
        make_folder(self.folder)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def names(self) -> list[str]:
        """Return every document's name, sorted; whether it can be read shows when it is.

        A write that was killed is finished first. Raises DocumentError("not-a-folder"); a folder that is not
        there has none.
        """
        try:
            for left in self.folder.glob(f".*{COMMITTED}"):
                finish(self.path(left.name[1:].removesuffix(COMMITTED)))
            with os.scandir(self.folder) as entries:
                return sorted(e.name.removesuffix(".yaml") for e in entries if _is_document(e.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                raise DocumentError("not-a-folder", path=self.folder) from None
            raise DocumentError("invalid", path=self.folder, problem=error.strerror) from None

    def write(self, text: str, receipt: Receipt, template: str | None = None) -> Path:
        """Write document, receipt, the schema for editors and the template it names; all or nothing.

        The caller holds the lock.
        """
        path = self.path(receipt.name)
        contents = {path: text, **self.receipt_texts(path, receipt)}
        if template is not None:
            contents = {template_file.place(path): template, **contents}
        schema_file = self.folder / SCHEMA_FILE
        if not _holds(schema_file, schema.text("document")):
            write_all({schema_file: schema.text("document")})
        commit(path, contents)
        return path

    def amend(self, name: str, change: Callable[[Receipt], Receipt]) -> None:
        """Replace the present receipt, if it can be read, even if the document has changed or is missing."""
        with self.locked():
            finish(self.path(name))
            receipt = _receipt(receipt_path(self.path(name)))
            if receipt is not None:
                self.write_receipt(name, change(receipt))

    def write_receipt(self, name: str, receipt: Receipt) -> None:
        """Replace the receipt of the document ``name`` alone; the caller holds the lock."""
        commit(self.path(name), self.receipt_texts(self.path(name), receipt))

    def receipt_texts(self, path: Path, receipt: Receipt) -> dict[Path, str]:
        """Return the files of the receipt beside the document at ``path``."""
        return receipt_files.texts(receipt_path(path), receipt.to_json())


def load(path: Path, *, details: bool = True) -> StoredDocument:
    """Read the document at ``path``; without ``details`` its side file is not read.

    Raises DocumentError("no-such-document") and ("no-receipt").
    """
    from importer.document.yaml_edit.source_map import TextReason, read

    finish(path)
    try:
        text = read_plain(path, LONGEST).decode()  # its own line ends stay when it is written back
    except FileNotFoundError:
        raise DocumentError("no-such-document", name=path.name, folder=path.parent) from None
    except (OSError, UnicodeDecodeError) as error:
        problem = why(error) if isinstance(error, OSError) else Reason(TextReason.NOT_UTF8)
        raise DocumentError("invalid", path=path, problem=problem) from None
    data = read(text, path)
    receipt = _receipt(receipt_path(path), details=details)
    return StoredDocument(path, text, data, digest(data), receipt, misfit=_misfit(text, data, path))


def _misfit(text: str, data: Document, path: Path) -> DocumentError | None:
    try:
        schema.check("document", data, path)
    except DocumentError as error:
        mistakes = schema.problems(text)
        return error.but(problem=schema.reason(mistakes)) if mistakes else error
    return None


def _is_document(name: str) -> bool:
    return name.endswith(".yaml") and not name.startswith(".")


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def named(name: str, folder: str) -> tuple[Store, StoredDocument]:
    """Return what NAME|FILE means: a document of ``folder``, or the file itself. Raises DocumentError."""
    path = Path(name)
    is_file = path.suffix in {".yaml", ".yml"} or path.parent != Path()
    store = Store(path.parent if is_file else Path(folder))
    return store, load(path) if is_file else store.load(name)


def receipt_path(path: Path) -> Path:
    """Return the receipt's place beside a document."""
    return path.with_name(f"{path.stem}{receipt_files.ENDING}")


def _receipt(path: Path, *, details: bool = True) -> Receipt | None:
    """Return the receipt, if it fits its schema; raises DocumentError("newer-receipt")."""
    from importer.document.receipt import parse

    data, _ = _read(path, details=details)
    return None if data is None else parse(data)


def _read(path: Path, *, details: bool = True) -> tuple[dict[str, Any] | None, list[str]]:
    """Return a receipt's data as ``receipt_files.whole`` does; ``None`` for what does not fit the schema."""
    from importer.document.receipt import check_number

    small, place = _json(path), receipt_files.side_path(path)
    check_number(small, path)
    side = _json(place) if details else None
    try:
        data, unread = receipt_files.whole(mapping(small), side)
        schema.check("receipt", data, path)
    except (ValueError, RecursionError, DocumentError):
        return None, []
    return data, unread if side is not None or not place.exists() else [*unread, receipt_files.SIDE]


def _json(path: Path) -> object:
    """Return what a file holds; ``None`` where it cannot be read: a side file is not everywhere."""
    try:
        text = read_plain(path, LONGEST_RECEIPT).decode()
        return written(text, json.loads(text))
    except (OSError, ValueError, RecursionError):
        return None
