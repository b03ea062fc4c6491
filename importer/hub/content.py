"""What an engine reads of a repository, and its digest: two commits with one digest serve alike."""

from __future__ import annotations

import hashlib
import json
import re

from importer.hub.snapshot import RepoFile, Snapshot

PART = re.compile(r"-\d{5}-of-\d{5}(?=\.)")
SHARD = re.compile(r"([^/]*)-(\d{5})-of-(\d{5})\.(safetensors|bin)")
MOST_PARTS = 1024  # of a set; a name may claim 99,999
TOKENIZERS = re.compile(
    r"tokenizer\.json|[^/]*\.model(?:\.v\d+)?|tekken\.json|vocab\.(?:json|txt)|[^/]+\.tiktoken"
)


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


def missing_parts(files: tuple[RepoFile, ...]) -> tuple[tuple[str, ...], int]:
    """Return the numbered parts that are missing in sets of weights, and the parts of these sets.

    Each name holds the number of parts. Pickles count where there are no safetensors.
    """
    names = {f.path for f in weight_files(files)} or {f.path for f in files}
    found = [m for name in names if (m := SHARD.fullmatch(name)) and int(m[3]) <= MOST_PARTS]
    sets = sorted({(m[1], m[3], m[4]) for m in found})
    parts = [f"{stem}-{i:05}-of-{n}.{end}" for stem, n, end in sets for i in range(1, int(n) + 1)]
    return tuple(part for part in parts if part not in names), len(parts)


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
