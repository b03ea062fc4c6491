"""Secrets are cut out of what a server sends, before anything reads, judges or keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SHORTEST = 8  # characters; local servers accept any key, and shorter values occur by chance
CUT = "…"


def secrets_of(values: Iterable[str | None]) -> tuple[str, ...]:
    """Return the values and their words, plain and as JSON writes them, the longest first.

    A server may send back a key without its scheme. Parts shorter than ``SHORTEST`` are no secrets.
    """
    parts = [part for value in values if value for part in (value, *value.split())]
    written = ((part, json.dumps(part)[1:-1]) for part in parts)
    forms = {form for plain, text in written for form in (plain, text, text.replace("/", "\\/"))}
    return tuple(sorted((form for form in forms if len(form) >= SHORTEST), key=lambda f: (-len(f), f)))


def without(data: Any, secrets: Iterable[str]) -> Any:
    """Return ``data`` with the secrets cut out of every text, keys of mappings included."""
    if isinstance(data, str):
        for secret in secrets:
            data = data.replace(secret, CUT)
        return data
    if isinstance(data, Mapping):
        return {without(key, secrets): without(value, secrets) for key, value in data.items()}
    return [without(value, secrets) for value in data] if isinstance(data, list | tuple) else data


def redacted(chunks: Iterable[bytes], secrets: Iterable[str]) -> Iterator[bytes]:
    """Yield the chunks without the secrets, which may lie across their borders.

    The end of a chunk that may begin a secret waits for the next one.
    """
    known, kept = [secret.encode() for secret in secrets], b""
    for chunk in chunks:
        kept = _cut(kept + chunk, known)
        waiting = max((_begun(kept, secret) for secret in known), default=0)
        if len(kept) > waiting:
            yield kept[: len(kept) - waiting]
            kept = kept[len(kept) - waiting :]
    if kept:
        yield kept


def _cut(data: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in secrets:
        data = data.replace(secret, CUT.encode())
    return data


def _begun(data: bytes, secret: bytes) -> int:
    """Return the length of the longest end of ``data`` that begins the secret and is not all of it."""
    longest = min(len(data), len(secret) - 1)
    return next((size for size in range(longest, 0, -1) if data.endswith(secret[:size])), 0)
