"""Validations one after the other: outcomes, seconds and speed as columns, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from importer.reports.pictures.runs import LEGEND
from importer.reports.pictures.shapes import Legend, Picture, Shape, number
from importer.reports.report_model import OUTCOMES, duration
from importer.sentences import counted, moment

WIDTH, LEFT, RIGHT = 660.0, 130.0, 10.0
PANEL, SPACE = 76.0, 22.0
WIDEST = 34.0  # of a column


@dataclass(frozen=True, slots=True)
class PastValidation:
    """A validation that ended: its engine, its outcomes by name, and its figures; 0 is unknown."""

    engine: str
    at: str
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    rate: float = 0.0
    first: float = 0.0
    error: str = ""

    @property
    def total(self) -> int:
        """Return the number of probes."""
        return sum(int(number(self.counts.get(name))) for name in OUTCOMES)


def history(past: Sequence[PastValidation]) -> list[Picture]:
    """Return the validations as columns, with a panel for each figure that any of them has."""
    if not past:
        return []
    shapes: list[Shape] = []
    top = 4.0
    panels = (
        ("probes", lambda one: one.total, lambda value: f"{value:.0f}", _stacked),
        ("seconds", lambda one: one.seconds, duration, _plain("probes")),
        ("tokens/s", lambda one: one.rate, lambda value: f"{value:.1f}", _plain("rate")),
        ("first token", lambda one: one.first, duration, _plain("first")),
    )
    for name, value, text, pieces in panels:
        largest = float(max(map(value, past)))
        if largest <= 0:
            continue
        shapes += _panel(past, top, largest, pieces)
        shapes.append(Shape("text", "label", 0, top + 12, text=name))
        shapes.append(Shape("text", "soft", 0, top + 28, text=f"up to {text(largest)}"))
        top += PANEL + SPACE
    failed = [one for one in past if one.error]
    label = f"{counted(len(past), 'validation', 'validations')}; {_last(past[-1])}"
    shapes.append(Shape("text", "soft", LEFT, top - 4, text=moment(past[0].at)))
    if len(past) > 4:
        shapes.append(Shape("text", "end", WIDTH - RIGHT, top - 4, text=moment(past[-1].at)))
    legend = (*LEGEND, *((Legend("error", "ended by an error"),) if failed else ()))
    heads = ("when", "engine", "passed", "in all", "seconds", "tokens/s", "first token", "error")
    rows = tuple(map(_row, reversed(past)))
    return [
        Picture("history", "Validations so far", label, WIDTH, top + 4, tuple(shapes), legend, heads, rows)
    ]


Pieces = Callable[[PastValidation, float], list[tuple[str, float]]]


def _panel(past: Sequence[PastValidation], top: float, largest: float, pieces: Pieces) -> list[Shape]:
    step = (WIDTH - LEFT - RIGHT) / len(past)
    wide = round(min(WIDEST, 0.8 * step), 1)
    found = [Shape("rect", "ground", LEFT, top + PANEL, WIDTH - LEFT - RIGHT, 1)]
    pitch = min(step, WIDEST + 8)
    for place, one in enumerate(past):
        x, y = round(LEFT + place * pitch, 1), top + PANEL
        for kind, value in pieces(one, largest):
            high = PANEL * min(1.0, value / largest)
            y -= high
            if high > 0:
                found.append(Shape("rect", kind, x, round(y, 1), wide, round(max(high, 0.5), 1)))
    return found


def _stacked(one: PastValidation, largest: float) -> list[tuple[str, float]]:
    if not one.total:
        return [("error", largest if one.error else 0.0)]
    return [(name, number(one.counts.get(name))) for name in OUTCOMES]


def _plain(kind: str) -> Pieces:
    values = {"probes": "seconds", "rate": "rate", "first": "first"}
    return lambda one, _: [(kind, float(getattr(one, values[kind])))]


def _last(one: PastValidation) -> str:
    if one.error:
        return f"the last one ended by an error ({one.error})"
    return f"the last one on {one.engine}: {one.counts.get('pass', 0)} of {one.total} passed"


def _row(one: PastValidation) -> tuple[str, ...]:
    return (
        moment(one.at), one.engine, str(one.counts.get("pass", 0)) if one.total else "", str(one.total or ""),
        duration(one.seconds) if one.seconds else "", f"{one.rate:.1f}" if one.rate else "",
        f"{one.first:.2f} s" if one.first else "", one.error,
    )  # fmt: skip
