"""The files of a repository: those that importer reads, with their limits, and those that an engine reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from importer import backends
from importer.errors import RepositoryError
from importer.hub.snapshot import RepoFile, Snapshot, UnreadReason
from importer.reasons import Reason

PART = re.compile(r"-\d{5}-of-\d{5}(?=\.)")
SHARD = re.compile(r"([^/]*)-(\d{5})-of-(\d{5})\.(safetensors|bin)")
MOST_PARTS = 1024  # of a set; a name may claim 99,999
TOKENIZERS = re.compile(
    r"tokenizer\.json|[^/]*\.model(?:\.v\d+)?|tekken\.json|vocab\.(?:json|txt)|[^/]+\.tiktoken"
)


# Ends of the names of weights that engines here load, and of those for other programs.
LOADED = (".safetensors", ".bin", ".pt", ".pth", ".npz")
FOREIGN = (".gguf", ".onnx", ".msgpack", ".h5", ".ckpt", ".tflite", ".nemo", ".mlmodel", ".pkl", ".ggml")
# What a trainer keeps beside the weights: transformers, accelerate, DeepSpeed and torchtune.
STATE = re.compile(
    r"(?:training_args|optim(?:izer)?|scheduler|scaler|sampler|rng_state|random_states|dl_state_dict|recipe_state"
    r"|custom_checkpoint|zero_pp_rank|mp_rank)(?:[._-].*)?\.(?:bin|pth?|pkl)"
)


VARIANT = re.compile(r"\.[A-Za-z]\w*\.safetensors\Z")


# Pickle (.bin, .pt, .pth, .ckpt) and code (.py) are never fetched.
BESIDE = re.compile(r"[^/]+\.(?:json|jinja|txt|model|tiktoken)|additional_chat_templates/[^/]+\.jinja")


CODE = ".py"  # of models that bring their own


def is_weights(path: str, ends: tuple[str, ...] = LOADED + FOREIGN) -> bool:
    """Return whether a file holds weights, by its name."""
    return path.endswith(ends) and STATE.fullmatch(path.rpartition("/")[2]) is None


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
    if "unpinned" not in backends.of(backend).in_localai or content_digest(snapshot) is None:
        return None
    return {path: str(known) for path, known in sorted(_read(snapshot).items())}


def _read(snapshot: Snapshot) -> dict[str, str | None]:
    weights = {file.path for file in weight_files(snapshot.files)}
    read = (
        f for f in snapshot.files if f.path in weights or f.path.endswith(CODE) or BESIDE.fullmatch(f.path)
    )
    return {file.path: file.hash for file in read}


MOST = 6  # files that one import downloads, beside the card
CARD = "README.md"  # it describes the model, so that no other file takes its place
KIB, MIB = 1024, 1024 * 1024

# By value for the decisions, best first: file, largest size in bytes, whether the file is required if listed.
FILES: tuple[tuple[str, int, bool], ...] = (
    (r"config\.json", 2 * MIB, True),
    (r"chat_template\.jinja", 1 * MIB, True),
    (r"tokenizer_config\.json", 8 * MIB, True),
    (r"generation_config\.json", 256 * KIB, True),
    (r"chat_template\.json", 1 * MIB, True),
    (r"modules\.json", 256 * KIB, False),
    (r"[1-9]_Pooling/config\.json", 256 * KIB, False),
    (r"sentence_[\w-]+_config\.json", 256 * KIB, False),
    (r"[1-9]_Dense(?:_\d+)?/config\.json", 256 * KIB, False),
    (r"config_sentence_transformers\.json", 256 * KIB, False),
    (r"additional_chat_templates/tool_use\.jinja", 1 * MIB, False),
    (r"additional_chat_templates/[\w.-]+\.jinja", 1 * MIB, False),
    (r"quant(?:ize|ization)?_config\.json", 256 * KIB, False),
    (r"hf_quant_config\.json", 2 * MIB, False),
    (r"model\.safetensors\.index\.json", 16 * MIB, False),
    (r"added_tokens\.json", 2 * MIB, False),
    (r"special_tokens_map\.json", 1 * MIB, False),
    (r"processor_config\.json", 1 * MIB, False),
    (r"preprocessor_config\.json", 1 * MIB, False),
    (r"adapter_config\.json", 256 * KIB, False),
    (r"params\.json", 1 * MIB, False),
    (r"README\.md", 1 * MIB, False),
)
ALLOWED = re.compile("|".join(f"({pattern})" for pattern, _, _ in FILES), re.ASCII)
EXPECTED = ("config.json", "tokenizer_config.json", "generation_config.json")  # their absence is reported


def rank(path: str) -> int | None:
    """Return the index of an allowed file in ``FILES``; ``None`` for every other file."""
    match = ALLOWED.fullmatch(path)
    return None if match is None or match.lastindex is None else match.lastindex - 1


def size_limit(path: str) -> int:
    """Return the limit of an allowed file, in bytes.

    Raises ValueError for every other file.
    """
    place = rank(path)
    if place is None:
        raise ValueError(f"{path} is not on the list")
    return FILES[place][1]


def choose_files(
    files: Iterable[RepoFile], repo: str, most: int = MOST
) -> tuple[list[str], dict[str, Reason]]:
    """Return the files to read, best first, and the reason for each file that is not read or not listed.

    The card is read beside ``most`` others. Raises RepositoryError("too-large") for a required file.
    """
    sizes = {f.path: f.size for f in files}
    unknown = {path: Reason(UnreadReason.NOT_LISTED) for path in EXPECTED if path not in sizes}
    chosen: list[str] = []
    for _, path in sorted((place, p) for p in sizes if (place := rank(p)) is not None):
        if (sizes[path] or 0) > size_limit(path):
            unknown[path] = too_large(path, repo)
        elif len(chosen) == most and path != CARD:
            unknown[path] = Reason(UnreadReason.NOT_AMONG, most=most)
        else:
            chosen.append(path)
    return chosen, unknown


def too_large(path: str, repo: str) -> Reason:
    """Return the reason for a file beyond its limit.

    Raises RepositoryError("too-large") for a required file.
    """
    size = size_limit(path)
    most = f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
    refuse_unread(path, RepositoryError("too-large", file=path, repo=repo, limit=most))
    return Reason(UnreadReason.TOO_LARGE, limit=most)


def refuse_unread(path: str, error: RepositoryError) -> None:
    """Raise the error for a required file."""
    if is_needed(path):
        raise error


def is_needed(path: str) -> bool:
    """Return whether the file is required where the repository lists it."""
    place = rank(path)
    return place is not None and FILES[place][2]


def decode(path: str, data: bytes, repo: str) -> str | None:
    """Return a file's text; ``None`` for an optional file that is not UTF-8.

    A byte order mark stays, except in a card: engines render one in a template, and refuse one in JSON.
    Raises RepositoryError("not-text") for a required file.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        refuse_unread(path, RepositoryError("not-text", file=path, repo=repo))
        return None
    return text.removeprefix("\ufeff") if path.endswith(".md") else text
