"""Words for a person: nothing that models, repositories or servers wrote may steer what shows them."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any


def plain(text: str) -> str:
    """Text with control characters spelled out: a repository's words must not steer a terminal."""
    return "".join(
        c if c in "\n " or c.isprintable() or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape").decode()
        for c in text
    )  # fmt: skip


def trials(agreed: int, number: int, interval: tuple[float, float] | None) -> str:
    """How many said the same, and between what shares that holds at 95 %: ``3 of 3, 44–100 %``."""
    if interval is None:
        return ""
    low, high = (f"{100 * end:.0f}" for end in interval)
    return f"{agreed} of {number}, {low}–{high} %"


def duration(seconds: float) -> str:
    """``0.31 s``, ``12.4 s``, ``3 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def moment(text: str) -> str:
    """A time in UTC as receipts write it, for a person: ``2026-11-21 12:36 UTC``."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?\+00:00", text)
    return f"{found[1]} {found[2]} UTC" if found else text


def split(seconds: dict[str, float]) -> str:
    """``start 1.03 s, probes 2.68 s, stop 0.06 s``."""
    return ", ".join(f"{part} {duration(spent)}" for part, spent in seconds.items())


def value(data: Any) -> str:
    """A decision's value in one line."""
    if data is None:
        return "–"
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
