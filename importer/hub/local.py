"""A directory on this disk as a snapshot: the same files, the same limits, nothing from outside it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from importer.errors import RepositoryError, UsageError
from importer.hub import small
from importer.hub.snapshot import SETTINGS, RepoFile, Snapshot

MOST_FILES = 20_000  # a model has hundreds; a home directory named by mistake has millions
DEEPEST = 4  # folders
MOST_TEXTS = 40
MOST_HASHED, LONGEST_HASHED = 200, 64 * small.MIB  # files, and bytes of one: vocabularies have 30


def resolve(text: str, directory: Path) -> Snapshot:
    """The snapshot of a directory. Raises UsageError("no-such-directory") and RepositoryError."""
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
    """The files below ``root`` with sizes, hidden ones left out, sorted by path."""
    try:
        found = [f for _, f in zip(range(MOST_FILES), _walk(root, "", DEEPEST), strict=False)]
    except OSError as error:
        raise RepositoryError("unreadable", file=".", repo=root, problem=error.strerror or error) from None
    return tuple(sorted(found, key=lambda f: f.path))


def _walk(folder: Path, prefix: str, depth: int) -> Iterator[RepoFile]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth > 1:
                    yield from _walk(folder / entry.name, f"{prefix}{entry.name}/", depth - 1)
            else:
                yield RepoFile(prefix + entry.name, _size(entry))


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        found = entry.stat()
    except OSError:
        return None  # a link to nothing
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def with_hashes(root: Path, files: tuple[RepoFile, ...]) -> tuple[RepoFile, ...]:
    """The same files, code and settings with git's hash of what they hold; nothing of it is run."""
    named = [f.path for f in files if f.path in SETTINGS or f.path.endswith(".py")][:MOST_HASHED]
    found: dict[str, str] = {}
    for path in named:
        with contextlib.suppress(OSError), opened(root, path) as file:
            data = file.read(LONGEST_HASHED + 1)
            if len(data) <= LONGEST_HASHED:
                found[path] = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return tuple(replace(f, hash=found.get(f.path, f.hash)) for f in files)


def read(root: Path, files: tuple[RepoFile, ...], repo: str) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of all allowed files among ``files``, and a reason for each that was not read."""
    chosen, unknown = small.choose(files, repo, MOST_TEXTS)
    texts = {}
    for path in chosen:
        try:
            texts[path] = read_text(root, path, repo)
        except Unread as reason:
            unknown[path] = str(reason)
    return texts, unknown


class Unread(Exception):
    """Why an optional file was not read."""


def read_text(root: Path, path: str, repo: str) -> str:
    """One file's text.

    Raises Unread for an optional file and RepositoryError for one that nobody should decide without.
    """
    try:
        data = _bytes(root, path)
    except OSError as error:
        problem = error.strerror or str(error)
        small.refuse(path, RepositoryError("unreadable", file=path, repo=repo, problem=problem))
        raise Unread(problem) from None
    if len(data) > small.limit(path):
        raise Unread(small.too_large(path, repo))
    text = small.decode(path, data, repo)
    if text is None:
        raise Unread("it is not UTF-8 text")
    return text


def _bytes(root: Path, path: str) -> bytes:
    """At most one byte beyond the limit. Raises OSError."""
    with opened(root, path) as file:
        return file.read(small.limit(path) + 1)


def opened(root: Path, path: str) -> BinaryIO:
    """A file below ``root``. Raises OSError for links that leave and for what is no file."""
    target = Path(os.path.realpath(root / path, strict=True))
    if not (target.is_relative_to(root) or _is_blob(root, target)):
        raise OSError(0, "it links to a place outside the directory")
    # A pipe or a device would block or never end, and may take a file's place after any look at it.
    descriptor = os.open(target, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is not a plain file")
    return os.fdopen(descriptor, "rb")


def _is_blob(root: Path, target: Path) -> bool:
    """The Hub client's cache links ``snapshots/<commit>/file`` to ``../../blobs/<hash>``."""
    return root.parent.name == "snapshots" and target.parent == root.parent.parent / "blobs"
