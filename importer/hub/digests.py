"""Digests of weights, and of what an engine reads of a repository."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from importer.hub import cache, local
from importer.hub.content import weight_files
from importer.hub.folders import Folder
from importer.hub.snapshot import Snapshot
from importer.progress import Progress, Step, silent

CHUNK = 4 * 2**20  # bytes
LONG = 2**30  # bytes of all files together from which on progress is shown: a second or two
GIT = 40  # hex digits


def imported(snapshot: Snapshot, progress: Progress = silent) -> dict[str, str]:
    """Return the digests of a snapshot's weights by path; files that are nowhere to be read have none."""
    files = weight_files(snapshot.files)
    listed = {file.path: file.hash for file in files if file.hash is not None}
    if snapshot.directory is None:
        return listed
    absent = [file.path for file in files if file.path not in listed]
    return dict(
        sorted({**listed, **of_folder(snapshot.directory, dict.fromkeys(absent, ""), progress)}.items())
    )


def served(folder: Path, recorded: Mapping[str, str], progress: Progress = silent) -> dict[str, str]:
    """Return the digests of a folder's weights, and of all ``recorded`` files, in the kind of the record."""
    weights = [file.path for file in weight_files(local.listing(folder))]
    return of_folder(folder, {**dict.fromkeys(weights, ""), **recorded}, progress)


def of_folder(folder: Path, like: Mapping[str, str], progress: Progress = silent) -> dict[str, str]:
    """Return the digests of the files named in ``like``, each of the kind of its value there.

    A file that cannot be read, or lies outside of the folder, has none. ``progress`` is called with bytes.
    """
    digests: dict[str, str] = {}
    with contextlib.suppress(OSError), Folder(folder) as opened:
        counter = _Counter(sum(status.st_size for _, status in _present(opened, like)), progress)
        for path, was in like.items():
            with contextlib.suppress(OSError), opened.open(path) as file:
                digests[path] = _digest(file, counter, git=len(was) == GIT)
    return digests


def known(folder: Path, paths: Iterable[str]) -> dict[str, str | None]:
    """Return the SHA-256 of those files that exist, without a read; ``None`` where the file is a new one."""
    with contextlib.suppress(OSError), Folder(folder) as opened:
        return {path: cache.load_digest(_key(status)) for path, status in _present(opened, paths)}
    return {}


@dataclass(slots=True)
class _Counter:
    """The bytes read of all files; short work is silent."""

    total: int
    progress: Progress
    done: int = 0

    def add(self, count: int) -> None:
        before, self.done = self.done, self.done + count
        if self.total >= LONG and before * 100 // self.total != self.done * 100 // self.total:
            text = f"hashed {self.done / 1e9:.2f} of {self.total / 1e9:.2f} GB of weights"
            self.progress(Step(text, self.done, self.total, "bytes"))


def _digest(file: BinaryIO, counter: _Counter, *, git: bool) -> str:
    """Return the digest of an open file, from the cache where the same file was read before."""
    before = os.fstat(file.fileno())
    stored = None if git else cache.load_digest(_key(before))
    if stored is not None:
        counter.add(before.st_size)
        return stored
    state = hashlib.sha1(b"blob %d\0" % before.st_size, usedforsecurity=False) if git else hashlib.sha256()
    while chunk := file.read(CHUNK):
        state.update(chunk)
        counter.add(len(chunk))
    if not git and _key(os.fstat(file.fileno())) == _key(before):  # nobody wrote meanwhile
        cache.store_digest(_key(before), state.hexdigest())
    return state.hexdigest()


def _key(status: os.stat_result) -> tuple[int, ...]:
    """Return what is another one as soon as anybody writes the file or puts another in its place."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _present(folder: Folder, paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    for path in paths:
        with contextlib.suppress(OSError):
            yield path, folder.stat(path)
