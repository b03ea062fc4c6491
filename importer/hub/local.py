"""A directory on this disk as a snapshot: the same files and limits, nothing from outside the directory."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from string import hexdigits
from typing import BinaryIO

from importer.errors import RepositoryError, ServiceError, UsageError
from importer.hub import allowlist
from importer.hub.snapshot import SETTINGS, RepoFile, Snapshot, UnreadReason
from importer.reasons import Reason

MOST_FILES = 20_000  # a model has hundreds; a home directory named by mistake has millions
MOST_ENTRIES = 4 * MOST_FILES  # folders and hidden files included
DEEPEST = 4  # folders
MOST_TEXTS = 40
HASHES = (40, 64)  # letters of a blob's name: git's hash, or SHA-256
MOST_HASHED, LONGEST_HASHED = 200, 64 * allowlist.MIB  # files, and bytes of one: vocabularies have 30
ALL_HASHED = 256 * allowlist.MIB  # bytes of all together


@dataclass(frozen=True, slots=True)
class AllowedFolders:
    """Folders that may be read: those in ``roots`` and below; all where ``roots`` is ``None``."""

    roots: tuple[Path, ...] | None

    @classmethod
    def below(cls, folders: Iterable[str | Path]) -> AllowedFolders:
        """Return an allowance for these folders and all below; without folders, for none."""
        return cls(tuple(Path(os.path.realpath(folder)) for folder in folders))

    def also(self, folder: Path) -> AllowedFolders:
        """Return an allowance for these folders and one more."""
        return self if self.roots is None else AllowedFolders.below([*self.roots, folder])

    def folder(self, path: Path) -> Path:
        """Return the path with every link followed.

        Raises ServiceError("no-directories") for a path outside the roots.
        """
        real = Path(os.path.realpath(path))
        if self.roots is not None and not any(real.is_relative_to(root) for root in self.roots):
            raise ServiceError("no-directories", reference=str(path))
        return real


ANYWHERE = AllowedFolders(None)  # for the command line: the system's permissions decide


def resolve(text: str, directory: Path) -> Snapshot:
    """Return the snapshot of a directory.

    Raises UsageError("no-such-directory") and RepositoryError.
    """
    if not os.path.isdir(directory):  # noqa: PTH112 - unlike Path's, it raises nothing
        raise UsageError("no-such-directory", path=directory)
    root = directory.resolve()
    files = with_hashes(root, listing(root))
    texts, unknown = read(root, files, str(directory))
    return Snapshot(
        reference=text,
        model_id=None,
        revision=None,
        files=files,
        texts=texts,
        directory=root,
        unknown=unknown,
    )


def listing(root: Path) -> tuple[RepoFile, ...]:
    """Return the files below ``root`` with sizes, hidden ones left out, sorted by path."""
    try:
        files = [*islice(_walk(root, "", DEEPEST, iter(range(MOST_ENTRIES))), MOST_FILES)]
    except OSError as error:
        raise RepositoryError("unreadable", file=".", repo=root, problem=error.strerror or error) from None
    return tuple(sorted(files, key=lambda f: f.path))


def _walk(folder: Path, prefix: str, depth: int, left: Iterator[int]) -> Iterator[RepoFile]:
    """Yield the files below ``folder``; ``left`` counts the remaining entries of all folders together."""
    with os.scandir(folder) as entries:
        for entry, _ in zip(entries, left, strict=False):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth > 1:
                    yield from _walk(folder / entry.name, f"{prefix}{entry.name}/", depth - 1, left)
            else:
                yield RepoFile(prefix + entry.name, _size(entry))


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        status = entry.stat()
    except OSError:
        return None  # a link to nothing
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def with_hashes(root: Path, files: tuple[RepoFile, ...]) -> tuple[RepoFile, ...]:
    """Return the same files, code and settings with git's hash of their content; no code is run."""
    named = [f.path for f in files if f.path in SETTINGS or f.path.endswith(".py")][:MOST_HASHED]
    hashes: dict[str, str] = {}
    left = ALL_HASHED
    for path in named:
        with contextlib.suppress(OSError), opened(root, path) as file:
            most = min(left, LONGEST_HASHED)
            if os.fstat(file.fileno()).st_size > most:
                continue
            data = file.read(most + 1)
            left -= len(data)
            if len(data) <= most:
                hashes[path] = hashlib.sha1(
                    b"blob %d\0" % len(data) + data, usedforsecurity=False
                ).hexdigest()
    return tuple(replace(f, hash=hashes.get(f.path, f.hash)) for f in files)


def read(root: Path, files: tuple[RepoFile, ...], repo: str) -> tuple[dict[str, str], dict[str, Reason]]:
    """Return the texts of all allowed files among ``files``, and a reason for each unread file."""
    chosen, unknown = allowlist.choose(files, repo, MOST_TEXTS)
    texts = {}
    for path in chosen:
        try:
            texts[path] = read_text(root, path, repo)
        except Unread as unread:
            unknown[path] = unread.reason
    return texts, unknown


class Unread(Exception):
    """An optional file was not read."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.kind)
        self.reason = reason


class NotPlain(OSError):
    """A path that is no plain file of its folder."""

    def __init__(self, kind: UnreadReason) -> None:
        super().__init__(kind)
        self.reason = Reason(kind)


def why(error: OSError) -> Reason:
    """Return the reason of an error from opening or reading a file."""
    text = error.strerror or type(error).__name__
    return error.reason if isinstance(error, NotPlain) else Reason(UnreadReason.SYSTEM, says=text)


def read_text(root: Path, path: str, repo: str) -> str:
    """Return one file's text.

    Raises Unread for an optional file and RepositoryError for a required one.
    """
    try:
        data = _bytes(root, path)
    except OSError as error:
        allowlist.refuse(path, RepositoryError("unreadable", file=path, repo=repo, problem=why(error)))
        raise Unread(why(error)) from None
    if len(data) > allowlist.limit(path):
        raise Unread(allowlist.too_large(path, repo))
    text = allowlist.decode(path, data, repo)
    if text is None:
        raise Unread(Reason(UnreadReason.NOT_TEXT))
    return text


def _bytes(root: Path, path: str) -> bytes:
    """Return a file's bytes, at most one beyond the limit.

    Raises OSError.
    """
    with opened(root, path) as file:
        return file.read(allowlist.limit(path) + 1)


def read_plain(path: Path, limit: int) -> bytes:
    """Return a file's bytes, links followed.

    Raises OSError for a path that is no plain file or is longer than ``limit`` bytes.
    """
    with plain(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data


def opened(root: Path, path: str) -> BinaryIO:
    """Open a file below ``root``.

    Raises OSError for links that leave ``root`` and for a path that is no plain file.
    """
    target = Path(os.path.realpath(root / path, strict=True))
    if not (target.is_relative_to(root) or _is_blob(root, target)):
        raise NotPlain(UnreadReason.OUTSIDE)
    return plain(target, getattr(os, "O_NOFOLLOW", 0))


def plain(path: Path, flags: int = 0) -> BinaryIO:
    """Open a file, links followed.

    Raises OSError for a path that is no plain file.
    """
    # A pipe or a device would block or never end, and may replace a file after any check of its path.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlain(UnreadReason.NO_FILE)
    return os.fdopen(descriptor, "rb")


def _is_blob(root: Path, target: Path) -> bool:
    """Return whether the target is a blob of a cache that the folder belongs to: named by its hash.

    The Hub's client links ``snapshots/<commit>/file`` to ``../../blobs/<hash>``; copies of a cache may be
    less deep.
    """
    near = target.parent.name == "blobs" and target.parent.parent in root.parents
    return near and len(target.name) in HASHES and {*target.name} <= {*hexdigits}
