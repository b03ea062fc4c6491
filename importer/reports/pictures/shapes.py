"""Bars and columns of pictures, laid out from values, in hundredths of the room that a front end gives them.

So a picture has the width of its page, and its texts keep their size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from importer.frozen import frozen

WHOLE = 100.0
GAP = 0.25  # between two pieces, where both are wider
THINNEST = 0.3
LIMIT = 0.4  # the width of a limit's line


@frozen
class Piece:
    """A rectangle in hundredths of the width and the height of its drawing; ``kind`` is its class."""

    kind: str
    x: float
    width: float
    y: float = 0.0
    height: float = WHOLE


@frozen
class Bar:
    """A drawing between its label and its text; a ``tall`` one has room for columns."""

    label: str
    text: str
    pieces: tuple[Piece, ...]
    tall: bool = False


@frozen
class Legend:
    """The name of what has this class."""

    kind: str
    name: str


@frozen
class Picture:
    """Bars with their text alternative ``label`` and the table behind them; ``note`` is shown above them."""

    name: str
    title: str
    label: str
    bars: tuple[Bar, ...]
    legend: tuple[Legend, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def number(data: object) -> float:
    """Return a finite number of at least 0; 0 for anything else."""
    if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
        return 0.0
    return max(0.0, float(data))


def mapping(data: object) -> dict[str, object]:
    """Return a mapping with text keys; empty for anything else."""
    return {str(key): value for key, value in data.items()} if isinstance(data, dict) else {}


def mappings(data: object) -> list[dict[str, object]]:
    """Return the mappings of a list; empty for anything else."""
    return [mapping(one) for one in data if isinstance(one, dict)] if isinstance(data, list | tuple) else []


def device_title(name: str) -> str:
    """Return the name of a device as people write it, such as ``8 × H200`` for ``8xh200``."""
    count, _, kind = name.rpartition("x") if re.match(r"\d+x", name) else ("", "", name)
    return f"{count} × {kind.upper()}" if count else kind.upper()


def bar(
    label: str,
    parts: Sequence[tuple[str, float]],
    text: str,
    largest: float,
    *,
    ground: bool = False,
    limit: float = 0.0,
) -> Bar:
    """Return a bar of parts, each a class and a value; the room is ``largest``, and 0 is no limit."""
    pieces, at = [Piece("ground", 0, WHOLE)] if ground else [], 0.0
    for kind, value in parts:
        wide = min(scaled(value, largest), WHOLE - at)
        if wide > 0:
            pieces.append(Piece(kind, round(at, 2), round(gapped(wide), 2)))
        at += wide
    if limit:
        pieces.append(Piece("limit", round(max(0.0, scaled(limit, largest) - LIMIT), 2), LIMIT))
    return Bar(label, text, tuple(pieces))


def gapped(wide: float) -> float:
    """Return a piece's width without the gap behind it; a thin one stays visible."""
    return wide - GAP if wide > 3 * GAP else max(wide, THINNEST)


def scaled(value: float, largest: float) -> float:
    """Return the value in hundredths of ``largest``."""
    return WHOLE * min(1.0, value / largest) if largest > 0 else 0.0
