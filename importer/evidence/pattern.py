"""Patterns of the tables: what they match, and in which order they are asked.

A pattern is a family's name as it stands in model names, lower case. ``*`` stands for anything between two
parts, ``#`` for one or more digits; an ``org/`` in front asks for that organisation. Parts match at token
boundaries only, and a version is never cut: ``gemma-2`` is not in ``functiongemma-270m``, ``qwen3`` is
neither in ``qwen3.6`` nor in ``qwen3-6-27b``. Separators are read loosely: ``llama-3.1`` is in
``llama3.1``, ``llama-3-1`` and ``llama_3.1``.
"""

from __future__ import annotations

import re
from functools import lru_cache

_VERSION = re.compile(r"\.#(?![a-z])")
_LOOSE = {"-": "-?", ".": "[.-]", "#": "[0-9]+", "~": r"(?:\.[0-9]+|-[0-9])", "_": "-"}
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9#])-(?=[0-9#])")
_JUNCTION = re.compile(r"(?<=[a-z])(?=[0-9#])|(?<=[0-9#])(?=[a-z])")


def length(pattern: str) -> int:
    """How much of a name the pattern spells out, a wildcard digit half; longer patterns are asked first."""
    bare = pattern.rpartition("/")[2]
    return 2 * sum(c.isalnum() for c in bare) + bare.count("#")


def search(pattern: str, name: str) -> str | None:
    """The part of the normalised ``name`` that the pattern (without organisation) covers, or ``None``."""
    if not _possible(pattern, name):
        return None
    found = _compiled(pattern).search(name)
    return found.group() if found else None


@lru_cache(maxsize=2048)
def words(pattern: str) -> tuple[str, ...]:
    """The parts between wildcards, without separators: all of them stand in any name that matches."""
    return tuple(p for p in re.split(r"[*#]", _compact(pattern)) if p)


def _possible(pattern: str, name: str) -> bool:
    """A quick look that spares compiling most patterns."""
    compact = _compact(name)
    return all(word in compact for word in words(pattern))


@lru_cache(maxsize=2048)
def _compact(text: str) -> str:
    return text.replace("-", "").replace(".", "")


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*?".join(_part(p) for p in pattern.split("*")))


def _part(part: str) -> str:
    body = _JUNCTION.sub("-", _VERSION.sub("~", _BETWEEN_DIGITS.sub("_", part)))
    body = "".join(_LOOSE.get(c) or re.escape(c) for c in body)
    start = r"(?<![a-z0-9])" + (r"(?<![0-9]\.)" if part[0].isdigit() else "")
    end = r"(?![a-z0-9])" + (r"(?!\.[0-9])(?!-[0-9](?:-|$))" if part[-1].isdigit() or part[-1] == "#" else "")
    return f"{start}{body}{end}"
