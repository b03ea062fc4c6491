"""Strangers' JSON by the type that is wanted: ``None``, or something empty, where another stands there.

Whatever of it is looked up, compared or calculated with goes through here first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LARGEST = 1 << 56  # bytes, parameters: no model is larger


def text(value: object) -> str | None:
    """A text."""
    return value if isinstance(value, str) else None


def whole(value: object, least: int = 0, most: int = LARGEST) -> int | None:
    """A whole number within bounds; JSON's true is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if least <= value <= most else None


def mapping(value: object) -> Mapping[str, Any]:
    """An object."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[Any]:
    """A list."""
    return value if isinstance(value, list) else ()
