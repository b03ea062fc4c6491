"""The digest of what an engine reads of a repository: two commits with one digest serve alike."""

from __future__ import annotations

import hashlib
import json

from importer.hub.snapshot import RepoFile, Snapshot
from importer.hub.weights import BESIDE, weight_files

CODE = ".py"  # of models that bring their own
UNPINNED = ("mlx", "mlx-vlm")  # engines that LocalAI gives an id without a commit


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
