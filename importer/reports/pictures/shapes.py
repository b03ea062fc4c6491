"""Shapes of pictures, and bars that are laid out from values. All lengths are units of the drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from importer.frozen import frozen

WIDTH = 660
LABEL = 200  # where bars begin
VALUE = 120  # room behind them
SPAN = WIDTH - LABEL - VALUE
ROW, THICK = 26, 16
LONGEST = 26  # characters of a label in a drawing; the table has it whole
GAP = 1.0  # between two pieces, where both are wider


@frozen
class Shape:
    """A rectangle, or a text that begins at ``x`` on the line ``y``; ``kind`` is its class."""

    shape: Literal["rect", "text"]
    kind: str
    x: float
    y: float
    width: float = 0.0
    height: float = 0.0
    text: str = ""


@frozen
class Legend:
    """The name of what has this class."""

    kind: str
    name: str


@frozen
class Picture:
    """A drawing with its text alternative ``label`` and the table behind it."""

    name: str
    title: str
    label: str
    width: float
    height: float
    shapes: tuple[Shape, ...]
    legend: tuple[Legend, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@frozen
class Bar:
    """A row: its label, pieces as class and value, its text, and the value of a whole ``largest``."""

    label: str
    pieces: tuple[tuple[str, float], ...]
    text: str
    largest: float
    ground: bool = False


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


def short(text: str) -> str:
    """Return a label that fits before the bars."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def drawn(
    bars: Sequence[Bar], limits: Iterable[tuple[float, float, str]] = ()
) -> tuple[float, tuple[Shape, ...]]:
    """Return the height and the shapes of bars; a limit is a value, its whole and a name above it."""
    lines = list(limits)
    top = 18.0 if lines else 2.0
    shapes: list[Shape] = []
    for row, bar in enumerate(bars):
        y = top + row * ROW
        shapes.append(Shape("text", "label", 0, y + 12, text=short(bar.label)))
        if bar.ground:
            shapes.append(Shape("rect", "ground", LABEL, y, SPAN, THICK))
        shapes += _pieces(bar, y)
        shapes.append(Shape("text", "value", LABEL + SPAN + 8, y + 12, text=bar.text))
    height = top + len(bars) * ROW
    for value, whole, name in lines:
        x = _scaled(value, whole) + LABEL
        shapes.append(Shape("rect", "limit", round(x - 1, 1), top - 4, 2, height - top))
        shapes.append(Shape("text", "limit", round(x, 1), 10, text=name))
    return height, tuple(shapes)


def _pieces(bar: Bar, y: float) -> list[Shape]:
    found, at = [], 0.0
    for kind, value in bar.pieces:
        wide = min(_scaled(value, bar.largest), SPAN - at)
        if wide > 0:
            found.append(Shape("rect", kind, round(LABEL + at, 1), y, round(gapped(wide), 1), THICK))
        at += wide
    return found


def gapped(wide: float) -> float:
    """Return a piece's width with the gap behind it; a thin one stays visible."""
    return wide - GAP if wide > 3 * GAP else max(wide, 0.5)


def _scaled(value: float, largest: float) -> float:
    return SPAN * min(1.0, value / largest) if largest > 0 else 0.0
