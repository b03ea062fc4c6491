"""The Hub's description of one commit, read from the bytes of its answer; nothing else is looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from importer.errors import RepositoryError
from importer.hub import told
from importer.hub.reference import COMMIT, is_id
from importer.hub.snapshot import RepoFile, parse_object
from importer.reasons import Reason

LONGEST = 16 * 1024 * 1024  # bytes; repositories with ten thousand files stay under 5 MB
MOST_FILES = 50_000  # models have hundreds
MOST_VALUES = 1_000_000  # of the JSON, before it is read: ten a file, and as many again
MOST_TAGS = 1000
HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SAFE_PATH = re.compile(r"(?!/)(?:(?!\.\.?(?:/|$))[^/\\\x00-\x1f\x7f]+(?:/(?!$)|$))+")


class ListingReason(StrEnum):
    """Why a description cannot be used."""

    LONG = "long"
    VALUES = "values"
    FILES = "files"
    NOT_TEXT = "not-text"
    NO_COMMIT = "no-commit"
    OTHER_COMMIT = "other-commit"
    JSON = "json"


class Malformed(Exception):
    """The description cannot be used."""

    def __init__(self, kind: ListingReason, **fields: object) -> None:
        super().__init__(kind)
        self.reason = Reason(kind, **fields)


@dataclass(frozen=True, slots=True)
class Listing:
    """One commit as the Hub describes it: id as the Hub writes it, files with sizes, its own words."""

    repo: str
    commit: str
    files: tuple[RepoFile, ...]
    info: Mapping[str, Any]


def parse(body: bytes, repo: str, revision: str | None) -> Listing:
    """Return what the answer about ``repo`` at ``revision`` says, in time and memory that grow with it.

    Raises Malformed.
    """
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise Malformed(ListingReason.VALUES, limit=MOST_VALUES)
    try:
        data = parse_object(body.decode(), repo, repo)
    except UnicodeDecodeError:
        raise Malformed(ListingReason.NOT_TEXT) from None
    except RepositoryError as error:
        raise Malformed(ListingReason.JSON, problem=error.details["problem"]) from None
    commit = data.get("sha")
    if not (isinstance(commit, str) and COMMIT.fullmatch(commit)):
        raise Malformed(ListingReason.NO_COMMIT)
    if revision is not None and COMMIT.fullmatch(revision) and commit != revision:
        raise Malformed(ListingReason.OTHER_COMMIT, commit=commit)
    return Listing(_repo_id(data, repo), commit, _files(data.get("siblings")), _info(data))


def _repo_id(data: Mapping[str, Any], asked: str) -> str:
    """The id as the Hub writes it: after a renaming, or with its own capitals."""
    names = (data.get("id"), data.get("modelId"))
    return next((name for name in names if isinstance(name, str) and is_id(name)), asked)


def _files(siblings: object) -> tuple[RepoFile, ...]:
    """The listed files; a name that could leave its place is no file."""
    found = {}
    listed = siblings if isinstance(siblings, list) else []
    if len(listed) > MOST_FILES:
        raise Malformed(ListingReason.FILES, count=len(listed), limit=MOST_FILES)
    for entry in listed:
        path = entry.get("rfilename") if isinstance(entry, dict) else None
        if isinstance(path, str) and len(path) < 1024 and SAFE_PATH.fullmatch(path):
            found[path] = RepoFile(path, told.whole(entry.get("size")), _hash(entry))
    return tuple(found[path] for path in sorted(found))


def _hash(entry: Mapping[str, Any]) -> str | None:
    """Of a large file the SHA-256 of its content, else git's hash."""
    large = told.mapping(entry.get("lfs"))
    hashes = (large.get("sha256"), entry.get("blobId"))
    return next((h for h in hashes if isinstance(h, str) and HASH.fullmatch(h)), None)


def _info(data: Mapping[str, Any]) -> dict[str, Any]:
    """The Hub's own words under our names, each of the right type or left out."""
    card = told.mapping(data.get("cardData"))
    weights = told.mapping(data.get("safetensors"))
    words = {
        "pipeline_tag": told.text(data.get("pipeline_tag")),
        "library_name": told.text(data.get("library_name")),
        "tags": [t for t in told.listed(data.get("tags"))[:MOST_TAGS] if isinstance(t, str)],
        "card": card,
        "base_models": _base_models(card),
        "config": told.mapping(data.get("config")) or None,
        "safetensors_total": told.whole(weights.get("total")),
        "safetensors": told.mapping(weights.get("parameters")) or None,
        "gated": data.get("gated") if isinstance(data.get("gated"), (bool, str)) else None,
        "modified": told.text(data.get("lastModified")),
    }
    return {key: value for key, value in words.items() if value is not None}


def _base_models(card: Mapping[str, Any]) -> list[str]:
    """What the card names as the origin of the weights: one id or several."""
    named = card.get("base_model")
    return [n for n in (named if isinstance(named, list) else [named])[:MOST_TAGS] if isinstance(n, str)]
