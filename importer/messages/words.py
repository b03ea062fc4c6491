"""A number with its word, a time, and foreign text, as people read them; no sentence."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache


def moment(text: str) -> str:
    """Return a UTC time of a receipt as text: ``2026-11-21 12:36 UTC``; another text stays."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?\+00:00", text)
    return f"{match[1]} {match[2]} UTC" if match else text


def counted(number: int, one: str, many: str) -> str:
    """Return ``1 probe`` or ``1,204 probes``."""
    return f"{number:,} {one if number == 1 else many}"


def plain(text: str) -> str:
    """Return text with control characters escaped: text of a repository must not steer a terminal."""
    return "".join(map(_escaped, text))


@lru_cache(4096)
def _escaped(letter: str) -> str:
    if letter in "\n " or letter.isprintable() or unicodedata.category(letter) == "Zs":
        return letter
    return letter.encode("unicode_escape").decode()
