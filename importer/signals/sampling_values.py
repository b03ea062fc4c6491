"""Sampling values under the document's names, and their ranges."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

GREEDY = "do_sample: false"  # of a generation config: the likeliest token each time
MODES_KEY = "sampling_modes"


# The lowest and the highest value that the engines accept, and whether the low end is excluded.
RANGES: dict[str, tuple[float, float, bool]] = {
    "temperature": (0, 2, False),
    "top_p": (0, 1, True),
    "top_k": (-1, 1_000_000, False),
    "min_p": (0, 1, False),
    "repeat_penalty": (0, 2, True),
    "presence_penalty": (-2, 2, False),
    "frequency_penalty": (-2, 2, False),
    "max_tokens": (1, 10_000_000, False),
}


WHOLE = ("top_k", "max_tokens")


def usable(key: str, value: Any) -> float | None:
    """Return the value if it is a number in range, and whole for a count; else ``None``."""
    if key not in RANGES or not is_number(value):
        return None
    low, high, is_open = RANGES[key]
    if not low <= value <= high or (is_open and value == low) or (key in WHOLE and value != int(value)):
        return None
    return int(value) if key in WHOLE or isinstance(value, int) else value


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether the value is a finite number; JSON's true is none."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)
