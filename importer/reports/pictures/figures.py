"""Memory: the parts of the estimate against the device, predicted beside measured, and other plans.

Validations one after the other: outcomes, seconds and speed as columns, the oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from importer.frozen import frozen
from importer.memory.plan_settings import gib
from importer.reports.pictures.runs import LEGEND
from importer.reports.pictures.shapes import (
    WIDTH,
    Bar,
    Legend,
    Picture,
    Shape,
    drawn,
    mapping,
    mappings,
    number,
)
from importer.reports.report_model import OUTCOMES, Run, duration
from importer.sentences import counted, moment

ENDS = ("low", "likely", "high")
KINDS = {
    "weights": "c1", "kv cache": "c2", "states": "c3", "activations": "c4", "logits": "c5", "graphs": "c6",
    "overhead": "c7",
}  # fmt: skip
OTHER = "c8"
SMALL = 0.25  # of the device: below it the parts are drawn once more, larger
SHOWN = 8  # plans


def memory(fit: Mapping[str, object]) -> list[Picture]:
    """Return the stacked parts against the device, and enlarged where they are small beside it."""
    estimate, device = mapping(fit.get("estimate")), mapping(fit.get("device"))
    terms = mappings(estimate.get("terms"))
    sums = {end: sum(number(term.get(end)) for term in terms) for end in ENDS}
    if not sums["high"]:
        return []
    size, budget = number(device.get("memory")), number(fit.get("budget"))
    largest = max(size, budget, sums["high"])
    name, share = str(device.get("name") or "the device"), budget or size
    heads = ("part", *ENDS, "why")
    rows = [_row(str(t.get("part")), t, str(t.get("why") or "")) for t in terms] + [_row("in all", sums, "")]
    label = f"{gib(sums['likely'])} likely, {gib(sums['low'])} to {gib(sums['high'])}"
    against = f" of {gib(share)} that an engine may fill on {name}" if share else ""
    limits = [(budget, largest, f"{gib(budget)} to fill")] if budget else []
    legend = tuple(_legend(terms))
    height, shapes = drawn(_stacks(terms, sums, largest, bool(size)), limits)
    found = [
        Picture(
            "memory",
            "Memory of one device",
            f"{label}{against}",
            WIDTH,
            height,
            shapes,
            legend,
            heads,
            tuple(rows),
        )
    ]
    if sums["high"] < SMALL * largest:
        height, shapes = drawn(_stacks(terms, sums, sums["high"], False))
        found.append(
            Picture(
                "memory-parts",
                "The parts, enlarged",
                label,
                WIDTH,
                height,
                shapes,
                legend,
                heads,
                tuple(rows),
            )
        )
    return found


def _row(part: str, values: Mapping[str, object], why: str) -> tuple[str, ...]:
    return (part, *(gib(number(values.get(end))) for end in ENDS), why)


def _kind(term: Mapping[str, object]) -> str:
    return KINDS.get(str(term.get("part")), OTHER)


def _legend(terms: Sequence[Mapping[str, object]]) -> list[Legend]:
    return [Legend(_kind(term), str(term.get("part"))) for term in terms]


def _stacks(
    terms: Sequence[Mapping[str, object]], sums: Mapping[str, float], largest: float, ground: bool
) -> list[Bar]:
    bars = []
    for end in ENDS:
        pieces = tuple((_kind(term), number(term.get(end))) for term in terms)
        bars.append(Bar(end, pieces, gib(sums[end]), largest, ground))
    return bars


def measured(runs: Sequence[Run]) -> list[Picture]:
    """Return predicted beside measured for each figure of each run; each pair has its own scale."""
    bars, rows = [], []
    for run in runs:
        for figure, values in run.fit.items():
            both = mapping(values)
            if not {"predicted", "reported"} <= both.keys():
                continue
            name, sides = figure.replace("_", " "), (number(both["predicted"]), number(both["reported"]))
            texts = [_amount(figure, side) for side in sides]
            largest = max(sides)
            bars += [
                Bar(f"{name}, {run.label}", (("predicted", sides[0]),), texts[0], largest),
                Bar("", (("reported", sides[1]),), texts[1], largest),
            ]
            off = f"{(sides[0] / sides[1] - 1):+.0%}" if sides[1] else ""
            rows.append((name, run.label, *texts, off))
    if not bars:
        return []
    height, shapes = drawn(bars)
    label = "; ".join(f"{name} on {engine}: {a} predicted, {b} measured" for name, engine, a, b, _ in rows)
    legend = (Legend("predicted", "predicted"), Legend("reported", "measured"))
    heads = ("figure", "engine", "predicted", "measured", "difference")
    return [
        Picture(
            "measured", "Predicted and measured", label, WIDTH, height, shapes, legend, heads, tuple(rows)
        )
    ]


def _amount(figure: str, size: float) -> str:
    return f"{size:,.0f} tokens" if figure.endswith("tokens") else gib(size)


def plans(fit: Mapping[str, object]) -> list[Picture]:
    """Return the estimated rate of the chosen plan and of the next-best ones."""
    found = mappings(fit.get("plans"))[:SHOWN]
    if not found:
        return []
    largest = max(number(plan.get("tokens_per_second")) for plan in found)
    bars, rows = [], []
    for place, plan in enumerate(found):
        rate, name = number(plan.get("tokens_per_second")), _parallel(plan)
        bars.append(
            Bar(name, (("chosen" if place == 0 else "plan", rate),), f"{rate:,.0f} tokens/s", largest)
        )
        rows.append((
            name, "chosen" if place == 0 else "", _count(plan, "devices"), _count(plan, "replicas"),
            _count(plan, "max_model_len"), _count(plan, "sequences"), f"{rate:,.0f}",
            "yes" if plan.get("meets") is True else "no", "; ".join(map(str, _list(plan.get("why")))),
        ))  # fmt: skip
    height, shapes = drawn(bars)
    others = counted(len(rows) - 1, "other plan", "other plans")
    label = f"Chosen: {rows[0][0]}, {bars[0].text} estimated; {others}"
    heads = ("plan", "", "devices", "replicas", "context", "sequences", "tokens/s", "meets the aim", "why")
    legend = (Legend("chosen", "chosen"), Legend("plan", "other plans"))
    return [Picture("plans", "Plans", label, WIDTH, height, shapes, legend, heads, tuple(rows))]


def _parallel(plan: Mapping[str, object]) -> str:
    short = (("tensor_parallel", "TP"), ("pipeline_parallel", "PP"), ("data_parallel", "DP"))
    parts = [f"{word} {number(plan.get(key)):.0f}" for key, word in short if number(plan.get(key)) > 1]
    return ", ".join([f"{_count(plan, 'devices')} × {plan.get('device') or 'device'}", *parts])


def _count(plan: Mapping[str, object], key: str) -> str:
    return f"{number(plan.get(key)):,.0f}"


def _list(data: object) -> Sequence[object]:
    return data if isinstance(data, list | tuple) else ()


HISTORY_WIDTH, LEFT, RIGHT = 660.0, 130.0, 10.0
PANEL, SPACE = 76.0, 22.0
WIDEST = 34.0  # of a column


@frozen
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
        shapes.append(Shape("text", "end", HISTORY_WIDTH - RIGHT, top - 4, text=moment(past[-1].at)))
    legend = (*LEGEND, *((Legend("error", "ended by an error"),) if failed else ()))
    heads = ("when", "engine", "passed", "in all", "seconds", "tokens/s", "first token", "error")
    rows = tuple(map(_history_row, reversed(past)))
    return [
        Picture(
            "history", "Validations so far", label, HISTORY_WIDTH, top + 4, tuple(shapes), legend, heads, rows
        )
    ]


Pieces = Callable[[PastValidation, float], list[tuple[str, float]]]


def _panel(past: Sequence[PastValidation], top: float, largest: float, pieces: Pieces) -> list[Shape]:
    step = (HISTORY_WIDTH - LEFT - RIGHT) / len(past)
    wide = round(min(WIDEST, 0.8 * step), 1)
    found = [Shape("rect", "ground", LEFT, top + PANEL, HISTORY_WIDTH - LEFT - RIGHT, 1)]
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


def _history_row(one: PastValidation) -> tuple[str, ...]:
    return (
        moment(one.at), one.engine, str(one.counts.get("pass", 0)) if one.total else "", str(one.total or ""),
        duration(one.seconds) if one.seconds else "", f"{one.rate:.1f}" if one.rate else "",
        f"{one.first:.2f} s" if one.first else "", one.error,
    )  # fmt: skip
