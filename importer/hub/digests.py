"""Digests of weights, and of what an engine reads of a repository."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from importer.hub import cache, local
from importer.hub.folders import Folder
from importer.hub.snapshot import RepoFile, Snapshot
from importer.progress import Progress, Step, silent

PART = re.compile(r"-\d{5}-of-\d{5}(?=\.)")
VARIANT = re.compile(r"\.[A-Za-z]\w*\.safetensors\Z")
# Pickle (.bin, .pt, .pth, .ckpt) and code (.py) are never fetched.
BESIDE = re.compile(r"[^/]+\.(?:json|jinja|txt|model|tiktoken)|additional_chat_templates/[^/]+\.jinja")
CODE = ".py"  # of models that bring their own
UNPINNED = ("mlx", "mlx-vlm")  # engines that LocalAI gives an id without a commit


def weight_files(files: tuple[RepoFile, ...]) -> tuple[RepoFile, ...]:
    """Return the safetensors files that an engine loads: at the top, one copy of each weight, no adapter.

    A second copy is named ``consolidated``, or has a variant in its name (``model.fp16.safetensors``).
    """
    top = tuple(f for f in files if "/" not in f.path and f.path.endswith(".safetensors"))
    names = {PART.sub("", f.path) for f in top}
    once = [f for f in top if not f.path.startswith(("consolidated", "adapter_")) and not _variant(f, names)]
    return tuple(once) or top


def _variant(file: RepoFile, names: set[str]) -> bool:
    """Return whether ``names`` has the same file without a variant."""
    plain = VARIANT.sub(".safetensors", PART.sub("", file.path))
    return plain != PART.sub("", file.path) and plain in names


def content_digest(snapshot: Snapshot) -> str | None:
    """Return ``sha256:…`` over the paths and hashes of weights, configs, templates, tokenizer and code.

    ``None`` for a directory, without weights, and where the hash of one of these files is unknown.
    """
    read = _read(snapshot)
    if snapshot.revision is None or not weight_files(snapshot.files) or None in read.values():
        return None
    text = json.dumps(sorted(read.items()), ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def content_files(snapshot: Snapshot, backend: str) -> dict[str, str] | None:
    """Return path and hash of these files, for an engine that LocalAI can give no commit; else ``None``."""
    if backend not in UNPINNED or content_digest(snapshot) is None:
        return None
    return {path: str(known) for path, known in sorted(_read(snapshot).items())}


def _read(snapshot: Snapshot) -> dict[str, str | None]:
    weights = {file.path for file in weight_files(snapshot.files)}
    return {file.path: file.hash for file in snapshot.files if file.path in weights or _beside(file)}


def _beside(file: RepoFile) -> bool:
    return file.path.endswith(CODE) or BESIDE.fullmatch(file.path) is not None


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
