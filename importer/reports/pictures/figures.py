"""Memory: the parts of the estimate against the device, predicted beside measured, and other plans.

Validations one after the other: outcomes, seconds and speed as columns, the oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from importer.frozen import frozen
from importer.memory.plan_settings import gib
from importer.reports.pictures.runs import LEGEND, SEVERAL
from importer.reports.pictures.shapes import (
    WHOLE,
    Bar,
    Legend,
    Picture,
    Piece,
    bar,
    device_title,
    gapped,
    mapping,
    mappings,
    number,
    scaled,
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
    name, share = device_title(str(device.get("name") or "the device")), budget or size
    heads = ("part", *ENDS, "why")
    rows = [_row(str(t.get("part")), t, str(t.get("why") or "")) for t in terms] + [_row("in all", sums, "")]
    between = f", {gib(sums['low'])} to {gib(sums['high'])}" if gib(sums["low"]) != gib(sums["high"]) else ""
    label = f"{gib(sums['likely'])} likely{between}"
    against = f" of {gib(share)} that an engine may fill on {name}" if share else ""
    legend = [_legend(term) for term in terms]
    limit = [Legend("limit", f"limit: {gib(budget)} to fill")] if budget else []
    stacks = _stacks(terms, sums, largest, budget, bool(size))
    note = label + against
    table = (heads, tuple(rows))
    found = [Picture("memory", "Memory of one device", note, stacks, (*legend, *limit), *table, note)]
    if sums["high"] < SMALL * largest:
        parts = _stacks(terms, sums, sums["high"])
        found.append(Picture("memory-parts", "The parts, enlarged", label, parts, tuple(legend), *table))
    return found


def _row(part: str, values: Mapping[str, object], why: str) -> tuple[str, ...]:
    return (part, *(gib(number(values.get(end))) for end in ENDS), why)


def _kind(term: Mapping[str, object]) -> str:
    return KINDS.get(str(term.get("part")), OTHER)


def _legend(term: Mapping[str, object]) -> Legend:
    return Legend(_kind(term), f"{term.get('part')} {gib(number(term.get('likely')))}")


def _stacks(
    terms: Sequence[Mapping[str, object]],
    sums: Mapping[str, float],
    largest: float,
    limit: float = 0.0,
    ground: bool = False,
) -> tuple[Bar, ...]:
    """Return a bar for each end of the estimate; ends with the same figure share one."""
    ends: dict[str, list[str]] = {}
    for end in ENDS:
        ends.setdefault(gib(sums[end]), []).append(end)
    return tuple(
        bar(
            ", ".join(names) if len(ends) > 1 else "in all",
            [(_kind(term), number(term.get(names[-1]))) for term in terms],
            text,
            largest,
            ground=ground,
            limit=limit,
        )
        for text, names in ends.items()
    )


def measured(runs: Sequence[Run]) -> list[Picture]:
    """Return predicted beside measured for each figure of each run; each pair has its own scale."""
    bars, rows = list[Bar](), []
    for run in runs:
        for figure, values in run.fit.items():
            both = mapping(values)
            if not {"predicted", "reported"} <= both.keys():
                continue
            name, sides = figure.replace("_", " "), (number(both["predicted"]), number(both["reported"]))
            texts = [_amount(figure, side) for side in sides]
            largest = max(sides)
            bars += [
                bar(f"{name}, {run.label}, predicted", [("predicted", sides[0])], texts[0], largest),
                bar("measured", [("reported", sides[1])], texts[1], largest),
            ]
            off = f"{(sides[0] / sides[1] - 1):+.0%}" if sides[1] else ""
            rows.append((name, run.label, *texts, off))
    if not bars:
        return []
    label = "; ".join(f"{name} on {engine}: {a} predicted, {b} measured" for name, engine, a, b, _ in rows)
    heads = ("figure", "engine", "predicted", "measured", "difference")
    return [Picture("measured", "Predicted and measured", label, tuple(bars), (), heads, tuple(rows))]


def _amount(figure: str, size: float) -> str:
    return f"{size:,.0f} tokens" if figure.endswith("tokens") else gib(size)


def plans(fit: Mapping[str, object]) -> list[Picture]:
    """Return the upper bound of the rate of the chosen plan and of the next-best ones; none of one plan."""
    found = mappings(fit.get("plans"))[:SHOWN]
    if len(found) < SEVERAL:
        return []
    largest = max(number(plan.get("tokens_per_second")) for plan in found)
    bars, rows = list[Bar](), []
    for place, plan in enumerate(found):
        rate, name = number(plan.get("tokens_per_second")), _parallel(plan)
        kind, chosen = ("plan", "") if place else ("chosen", "chosen")
        bars.append(
            bar(f"{name} ({chosen})" if chosen else name, [(kind, rate)], f"≤ {rate:,.0f} tokens/s", largest)
        )
        rows.append((
            name, chosen, _count(plan, "devices"), _count(plan, "replicas"),
            _count(plan, "max_model_len"), _count(plan, "sequences"), f"{rate:,.0f}",
            "yes" if plan.get("meets") is True else "no", "; ".join(map(str, _list(plan.get("why")))),
        ))  # fmt: skip
    why = _chosen_by(found[0], mapping(fit.get("aim")).get("goal"))
    others = counted(len(rows) - 1, "other plan", "other plans")
    label = f"Chosen: {rows[0][0]}, upper bound {rows[0][6]} tokens/s (calculated); {others}"
    heads = ("plan", "", "devices", "replicas", "context", "sequences", "upper bound, tokens/s",
             "meets the aim", "why")  # fmt: skip
    legend = (Legend("chosen", f"chosen, {why}"), Legend("plan", "other plans"))
    note = "Each rate is an upper bound (calculated), not a measurement."
    return [Picture("plans", "Plans", label, tuple(bars), legend, heads, tuple(rows), note)]


def _chosen_by(plan: Mapping[str, object], goal: object) -> str:
    """Return what chose the plan: the goal, or the rule without one (docs/plan.md)."""
    if goal:
        return f"for the goal {goal}"
    copied = number(plan.get("tensor_parallel")) <= 1 and number(plan.get("pipeline_parallel")) <= 1
    return f"without a goal: {'a copy on each device' if copied else 'the widest tensor parallelism'}"


def _parallel(plan: Mapping[str, object]) -> str:
    short = (("tensor_parallel", "TP"), ("pipeline_parallel", "PP"), ("data_parallel", "DP"))
    parts = [f"{word} {number(plan.get(key)):.0f}" for key, word in short if number(plan.get(key)) > 1]
    return " · ".join([device_title(str(plan.get("device") or "device")), *parts])


def _count(plan: Mapping[str, object], key: str) -> str:
    return f"{number(plan.get(key)):,.0f}"


def _list(data: object) -> Sequence[object]:
    return data if isinstance(data, list | tuple) else ()


WIDEST = 8.0  # hundredths of a panel, of a column


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
    """Return the validations as columns, a panel for each known figure; none of one validation."""
    if len(past) < SEVERAL and not any(one.error for one in past):  # an error has no run that has it in words
        return []
    panels = (
        ("probes", lambda one: one.total, lambda value: f"{value:.0f}", _stacked),
        ("seconds", lambda one: one.seconds, duration, _plain("probes")),
        ("tokens/s", lambda one: one.rate, lambda value: f"{value:.1f}", _plain("rate")),
        ("first token", lambda one: one.first, duration, _plain("first")),
    )
    bars = []
    for name, value, text, pieces in panels:
        largest = float(max(map(value, past)))
        if largest > 0:
            bars.append(Bar(name, f"up to {text(largest)}", _columns(past, largest, pieces), tall=True))
    failed = [one for one in past if one.error]
    label = f"{counted(len(past), 'validation', 'validations')}; {_last(past[-1])}"
    legend = (*LEGEND, *((Legend("error", "ended by an error"),) if failed else ()))
    heads = ("when", "engine", "passed", "in all", "seconds", "tokens/s", "first token", "error")
    rows, note = tuple(map(_history_row, reversed(past))), f"{moment(past[0].at)} to {moment(past[-1].at)}"
    return [Picture("history", "Validations so far", label, tuple(bars), legend, heads, rows, note)]


Pieces = Callable[[PastValidation, float], list[tuple[str, float]]]


def _columns(past: Sequence[PastValidation], largest: float, pieces: Pieces) -> tuple[Piece, ...]:
    step = WHOLE / len(past)
    wide, pitch = round(min(WIDEST, 0.8 * step), 2), min(step, 1.25 * WIDEST)
    found = [Piece("ground", 0, WHOLE, WHOLE - 1, 1)]
    for place, one in enumerate(past):
        bottom = WHOLE
        for kind, value in pieces(one, largest):
            high = min(scaled(value, largest), bottom)
            if high > 0:
                found.append(
                    Piece(
                        kind, round(place * pitch, 2), wide, round(bottom - high, 2), round(gapped(high), 2)
                    )
                )
            bottom -= high
    return tuple(found)


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
    applicable = one.total - int(number(one.counts.get("not-applicable")))
    return f"the last one on {one.engine}: {one.counts.get('pass', 0)} of {applicable} passed"


def _history_row(one: PastValidation) -> tuple[str, ...]:
    return (
        moment(one.at), one.engine, str(one.counts.get("pass", 0)) if one.total else "", str(one.total or ""),
        duration(one.seconds) if one.seconds else "", f"{one.rate:.1f}" if one.rate else "",
        f"{one.first:.2f} s" if one.first else "", one.error,
    )  # fmt: skip
