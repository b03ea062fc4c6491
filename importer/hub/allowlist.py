"""The small text files that importer reads, their limits of size, and the choice of those to download."""

from __future__ import annotations

import re
from collections.abc import Iterable

from importer.errors import RepositoryError
from importer.hub.snapshot import RepoFile, UnreadReason
from importer.reasons import Reason

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
    (r"sentence_bert_config\.json", 256 * KIB, False),
    (r"[1-9]_Dense/config\.json", 256 * KIB, False),
    (r"additional_chat_templates/tool_use\.jinja", 1 * MIB, False),
    (r"additional_chat_templates/[\w.-]+\.jinja", 1 * MIB, False),
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


def limit(path: str) -> int:
    """Return the limit of an allowed file, in bytes.

    Raises ValueError for every other file.
    """
    place = rank(path)
    if place is None:
        raise ValueError(f"{path} is not on the list")
    return FILES[place][1]


def choose(files: Iterable[RepoFile], repo: str, most: int = MOST) -> tuple[list[str], dict[str, Reason]]:
    """Return the files to read, best first, and the reason for each file that is not read or not listed.

    The card is read beside ``most`` others. Raises RepositoryError("too-large") for a required file.
    """
    sizes = {f.path: f.size for f in files}
    unknown = {path: Reason(UnreadReason.NOT_LISTED) for path in EXPECTED if path not in sizes}
    chosen: list[str] = []
    for _, path in sorted((place, p) for p in sizes if (place := rank(p)) is not None):
        if (sizes[path] or 0) > limit(path):
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
    most = _human(limit(path))
    refuse(path, RepositoryError("too-large", file=path, repo=repo, limit=most))
    return Reason(UnreadReason.TOO_LARGE, limit=most)


def refuse(path: str, error: RepositoryError) -> None:
    """Raise the error for a required file."""
    if needed(path):
        raise error


def needed(path: str) -> bool:
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
        refuse(path, RepositoryError("not-text", file=path, repo=repo))
        return None
    return text.removeprefix("\ufeff") if path.endswith(".md") else text


def _human(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
