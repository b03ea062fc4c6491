"""A directory on this disk as a snapshot: the same files and limits, nothing from outside the directory."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from importer.errors import RepositoryError, ServiceError, UsageError
from importer.frozen import frozen
from importer.hub import content
from importer.hub.content import TOKENIZERS
from importer.hub.folders import Folder, why
from importer.hub.snapshot import (
    LONGEST_POINTER,
    POINTER,
    SETTINGS,
    RepoFile,
    Snapshot,
    UnreadReason,
    git_hash,
)
from importer.reasons import Reason

MOST_FILES = 20_000  # a model has hundreds; a home directory named by mistake has millions
MOST_ENTRIES = 4 * MOST_FILES  # folders and hidden files included
DEEPEST = 4  # folders
MOST_TEXTS = 40
MOST_HASHED, LONGEST_HASHED = 200, 64 * content.MIB  # files, and bytes of one: vocabularies have 30
ALL_HASHED = 256 * content.MIB  # bytes of all together
WEIGHTS = re.compile(r"[^/]+\.(?:safetensors|bin)")


@frozen
class AllowedFolders:
    """Folders that may be read: those in ``roots`` and below; all where ``roots`` is ``None``."""

    roots: tuple[Path, ...] | None

    @classmethod
    def below(cls, folders: Iterable[str | Path]) -> AllowedFolders:
        """Return an allowance for these folders and all below; without folders, for none.

        Links in their names are followed once, here: what a name leads to later is not allowed.
        """
        return cls(tuple(Path(os.path.realpath(folder)) for folder in folders))

    def also(self, folder: Path) -> AllowedFolders:
        """Return an allowance for these folders and one more."""
        added = AllowedFolders.below([folder]).roots or ()
        return self if self.roots is None else AllowedFolders((*self.roots, *added))

    def folder(self, path: Path) -> Path:
        """Return the path with every link followed; ``Folder`` opens it only while it has none.

        Raises ServiceError("no-directories") for a path outside the roots, and UsageError.
        """
        try:
            real = Path(os.path.realpath(path))
        except OSError:  # a link that goes while it is read
            raise UsageError("no-such-directory", path=path) from None
        if self.roots is not None and not any(real.is_relative_to(root) for root in self.roots):
            raise ServiceError("no-directories", reference=str(path))
        return real


ANYWHERE = AllowedFolders(None)  # for the command line: the system's permissions decide


def resolve(text: str, directory: Path) -> Snapshot:
    """Return the snapshot of a directory, named without links.

    Raises UsageError("no-such-directory") and RepositoryError.
    """
    try:
        found = Folder(directory)
    except (OSError, ValueError):
        raise UsageError("no-such-directory", path=directory) from None
    with found as folder:
        files = with_hashes(folder, listed(folder))
        texts, unknown = read(folder, files, str(directory))
        return Snapshot(
            reference=text,
            model_id=None,
            revision=None,
            files=files,
            texts=texts,
            directory=folder.path,
            unknown=unknown,
            broken=dict(_broken(folder, files)),
        )


def listing(directory: Path) -> tuple[RepoFile, ...]:
    """Return the files below a directory with sizes, hidden ones left out, sorted by path.

    Raises RepositoryError("unreadable").
    """
    with opened(directory) as folder:
        return listed(folder)


def opened(directory: Path) -> Folder:
    """Open a directory that was resolved before.

    Raises RepositoryError("unreadable").
    """
    try:
        return Folder(directory)
    except OSError as error:
        raise _unlisted(directory, error) from None


def listed(folder: Folder) -> tuple[RepoFile, ...]:
    """Return the files of an opened folder, as ``listing``."""
    try:
        found = [*islice(folder.files(DEEPEST, iter(range(MOST_ENTRIES))), MOST_FILES)]
    except OSError as error:
        raise _unlisted(folder.path, error) from None
    return tuple(RepoFile(path, size) for path, size in sorted(found))


def _broken(folder: Folder, files: tuple[RepoFile, ...]) -> Iterator[tuple[str, Reason]]:
    """Yield the files at the top that engines read, and that are links without a target or pointers."""
    for file in files:
        if not (WEIGHTS.fullmatch(file.path) or file.path in SETTINGS or TOKENIZERS.fullmatch(file.path)):
            continue
        if file.size is None and _is_gone(folder, file.path):
            yield file.path, Reason(UnreadReason.GONE)
        elif (file.size or LONGEST_POINTER) < LONGEST_POINTER and _begins(
            folder, file.path, POINTER.encode()
        ):
            yield file.path, Reason(UnreadReason.POINTER)


def _is_gone(folder: Folder, path: str) -> bool:
    try:
        folder.stat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _begins(folder: Folder, path: str, words: bytes) -> bool:
    with contextlib.suppress(OSError), folder.open(path) as file:
        return file.read(len(words)) == words
    return False


def _unlisted(directory: Path, error: OSError) -> RepositoryError:
    return RepositoryError("unreadable", file=".", repo=directory, problem=why(error))


def with_hashes(folder: Folder, files: tuple[RepoFile, ...]) -> tuple[RepoFile, ...]:
    """Return the same files, code and settings with git's hash of their content; no code is run."""
    named = [f.path for f in files if f.path in SETTINGS or f.path.endswith(".py")][:MOST_HASHED]
    hashes: dict[str, str] = {}
    left = ALL_HASHED
    for path in named:
        with contextlib.suppress(OSError), folder.open(path) as file:
            most = min(left, LONGEST_HASHED)
            if os.fstat(file.fileno()).st_size > most:
                continue
            data = file.read(most + 1)
            left -= len(data)
            if len(data) <= most:
                hashes[path] = git_hash(data)
    return tuple(replace(f, hash=hashes.get(f.path, f.hash)) for f in files)


def read(folder: Folder, files: tuple[RepoFile, ...], repo: str) -> tuple[dict[str, str], dict[str, Reason]]:
    """Return the texts of all allowed files among ``files``, and a reason for each unread file."""
    chosen, unknown = content.choose_files(files, repo, MOST_TEXTS)
    texts = {}
    for path in chosen:
        try:
            texts[path] = _read_text(folder, path, repo)
        except Unread as unread:
            unknown[path] = unread.reason
    return texts, unknown


class Unread(Exception):
    """An optional file was not read."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.kind)
        self.reason = reason


def _read_text(folder: Folder, path: str, repo: str) -> str:
    """Return one file's text.

    Raises Unread for an optional file and RepositoryError for a required one.
    """
    try:
        with folder.open(path) as file:
            data = file.read(content.size_limit(path) + 1)
    except OSError as error:
        content.refuse_unread(path, RepositoryError("unreadable", file=path, repo=repo, problem=why(error)))
        raise Unread(why(error)) from None
    if len(data) > content.size_limit(path):
        raise Unread(content.too_large(path, repo))
    text = content.decode(path, data, repo)
    if text is None:
        raise Unread(Reason(UnreadReason.NOT_TEXT))
    return text
