"""A number with its word, and a time, as people read them; no sentence."""

from __future__ import annotations

import re


def moment(text: str) -> str:
    """Return a UTC time of a receipt as text: ``2026-11-21 12:36 UTC``; another text stays."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?\+00:00", text)
    return f"{match[1]} {match[2]} UTC" if match else text


def counted(number: int, one: str, many: str) -> str:
    """Return ``1 probe`` or ``1,204 probes``."""
    return f"{number:,} {one if number == 1 else many}"
