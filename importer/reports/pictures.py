"""Pictures of a report and of the page: bars with their texts, computed here once for both.

A front end gives the bars its own width and shows the rows as the table behind them. Bars and columns
are laid out
in hundredths of that width, so a picture fits its page, and its texts keep their size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from importer.frozen import frozen
from importer.memory.plan_settings import gib
from importer.reports.report_model import OUTCOMES, ProbeOutcome, ReportModel, Run, duration
from importer.sentences import counted, moment

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


Result = Literal["pass", "fail", "not-applicable"]


@frozen
class ProofRow:
    """Parsers with the same results; ``cells`` has one for each case, ``lost`` why the first is refuted."""

    parsers: tuple[str, ...]
    reads: bool
    cells: tuple[Result, ...]
    lost: str


@frozen
class ProofMap:
    """The parsers of one key by the cases of the proof; ``of`` is engine and version."""

    key: str
    of: str
    parsers: int
    cases: tuple[str, ...]
    rows: tuple[ProofRow, ...]


def proof_maps(proof: Mapping[str, Any] | None, chosen: Mapping[str, object]) -> tuple[ProofMap, ...]:
    """Return the map of each key whose parsers were asked; ``chosen`` has the parser of each key."""
    found = mapping(mapping(proof).get("verdicts"))
    of = " ".join(str(mapping(proof).get(part)) for part in ("engine", "version"))
    asked = {key: mappings(verdicts) for key, verdicts in found.items()}
    return tuple(_map(key, of, verdicts, chosen.get(key)) for key, verdicts in asked.items() if verdicts)


def _map(key: str, of: str, verdicts: list[dict[str, object]], chosen: object) -> ProofMap:
    verdicts = sorted(verdicts, key=lambda one: one.get("parser") != chosen)
    cases = tuple(
        dict.fromkeys(case for one in verdicts for case in (*_passed(one), *mapping(one.get("failed"))))
    )
    rows: dict[tuple[bool, tuple[Result, ...]], list[dict[str, object]]] = {}
    for one in verdicts:
        cells = tuple(_result(one, case) for case in cases)
        rows.setdefault((one.get("reads") is True, cells), []).append(one)
    made = tuple(
        ProofRow(tuple(str(one.get("parser")) for one in group), reads, cells, _lost(group[0]))
        for (reads, cells), group in rows.items()
    )
    return ProofMap(key, of, len(verdicts), cases, made)


def _passed(verdict: Mapping[str, object]) -> list[str]:
    passed = verdict.get("passed")
    return [str(case) for case in passed] if isinstance(passed, list | tuple) else []


def _result(verdict: Mapping[str, object], case: str) -> Result:
    if case in mapping(verdict.get("failed")):
        return "fail"
    return "pass" if case in _passed(verdict) else "not-applicable"


def _lost(verdict: Mapping[str, object]) -> str:
    """Return the first case that the parser lost, with the reason, and what the engine cannot do with it."""
    first = [f"{case}: {why}" for case, why in mapping(verdict.get("failed")).items()][:1]
    beside = (f"in pieces: {verdict['streaming']}" if verdict.get("streaming") else "",
              f"cannot be written: {verdict['forbidden']}" if verdict.get("forbidden") else "")  # fmt: skip
    return "; ".join(filter(None, (*first, *beside)))


SEVERAL = 2  # runs; one is in words already
PARTS = ("start", "probes", "stop")
NAMES = {"not-applicable": "not applicable"}
LEGEND = tuple(Legend(name, NAMES.get(name, name)) for name in OUTCOMES)


def outcomes(runs: Sequence[Run]) -> list[Picture]:
    """Return the outcomes of each run as one bar, all of the length of the longest run; none of one run."""
    runs = [run for run in runs if run.outcomes]
    if len(runs) < SEVERAL:
        return []
    largest = max(len(run.outcomes) for run in runs)
    bars = [
        bar(run.label, [(name, run.counts[name]) for name in OUTCOMES], _passed_share(run), largest)
        for run in runs
    ]  # fmt: skip
    rows = tuple(
        (run.label, run.state, moment(run.started), *(str(run.counts[name]) for name in OUTCOMES))
        for run in runs
    )
    label = "; ".join(f"{run.label} ({run.state}): {_passed_share(run)}" for run in runs)
    heads = ("engine", "state", "when", *(NAMES.get(name, name) for name in OUTCOMES))
    return [Picture("outcomes", "Outcomes", label, tuple(bars), LEGEND, heads, rows)]


def _passed_share(run: Run) -> str:
    applicable = len(run.outcomes) - run.counts["not-applicable"]
    return f"{run.counts['pass']} of {applicable} passed"


def times(runs: Sequence[Run]) -> list[Picture]:
    """Return the seconds of start, probes and stop of each run; none of one run."""
    timed = [run for run in runs if sum(map(number, run.seconds.values())) > 0]
    if len(timed) < SEVERAL:
        return []
    totals = {id(run): sum(map(number, run.seconds.values())) for run in timed}
    largest = max(totals.values())
    bars = [bar(run.label, _parts(run), duration(totals[id(run)]), largest) for run in timed]
    rows = tuple(
        (run.label, *(duration(number(run.seconds.get(part))) for part in PARTS), duration(totals[id(run)]))
        for run in timed
    )
    label = "; ".join(f"{run.label}: {duration(totals[id(run)])}" for run in timed)
    legend = tuple(Legend(part, part) for part in PARTS)
    return [Picture("times", "Time", label, tuple(bars), legend, ("engine", *PARTS, "in all"), rows)]


def _parts(run: Run) -> tuple[tuple[str, float], ...]:
    return tuple((part if part in PARTS else "ground", number(spent)) for part, spent in run.seconds.items())


def speed(runs: Sequence[Run]) -> list[Picture]:
    """Return tokens per second, and the time to the first token, of the runs that have them; none of one."""
    rate, first = "tokens_per_second", "first_token_seconds"
    return [
        *_compared(runs, "rate", "Tokens per second", rate, lambda value: f"{value:.1f} tokens/s"),
        *_compared(runs, "first", "Time to the first token", first, lambda value: f"{value:.2f} s"),
    ]


def _compared(
    runs: Sequence[Run], name: str, title: str, figure: str, text: Callable[[float], str]
) -> list[Picture]:
    found = [(run.label, number(run.speed.get(figure))) for run in runs if number(run.speed.get(figure))]
    if len(found) < SEVERAL:
        return []
    largest = max(value for _, value in found)
    bars = tuple(bar(engine, [(name, value)], text(value), largest) for engine, value in found)
    label = "; ".join(f"{engine}: {text(value)}" for engine, value in found)
    return [Picture(name, title, label, bars, (), (), ())]


ORDER = ("fail", "inconclusive", "not-shown", "pass", "not-applicable")
COLUMNS = 3
FEWEST = 8  # probes of a column, unless it is the only one


@frozen
class MatrixRow:
    """A probe with its outcome in each run that asked it; runs have numbers from 1."""

    probe: str
    lesson: str
    cells: tuple[tuple[int, ProbeOutcome], ...]

    @property
    def worst(self) -> str:
        """Return the worst outcome."""
        return min((outcome.outcome for _, outcome in self.cells), key=_rank)

    def outcome(self, run: int) -> ProbeOutcome | None:
        """Return the outcome in a run; ``None`` where it was not asked."""
        return next((outcome for number, outcome in self.cells if number == run), None)


def _rank(outcome: str) -> int:
    return ORDER.index(outcome) if outcome in ORDER else len(ORDER)


def rows(runs: Sequence[Run]) -> list[MatrixRow]:
    """Return a row for each probe, the worst first, else in the order of the runs."""
    found: dict[str, tuple[str, list[tuple[int, ProbeOutcome]]]] = {}
    for place, run in enumerate(runs, 1):
        for one in run.outcomes:
            found.setdefault(one.probe, (one.lesson, []))[1].append((place, one))
    made = [MatrixRow(probe, lesson, tuple(cells)) for probe, (lesson, cells) in found.items()]
    return sorted(made, key=lambda row: _rank(row.worst))


def columns(found: Sequence[MatrixRow]) -> list[list[MatrixRow]]:
    """Return the rows in up to three columns of about the same length."""
    length = max(FEWEST, -(-len(found) // COLUMNS))
    return [list(found[at : at + length]) for at in range(0, len(found), length)]


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


__all__ = [
    "Bar", "Legend", "MatrixRow", "Picture", "Piece", "ProofMap", "columns", "history", "of_memory",
    "of_runs", "proof_maps", "rows",
]  # fmt: skip


def of_memory(model: ReportModel) -> tuple[Picture, ...]:
    """Return the pictures of memory and of plans that the document has figures for."""
    return (*memory(model.fit), *measured(model.runs), *plans(model.fit))


def of_runs(runs: tuple[Run, ...]) -> tuple[Picture, ...]:
    """Return the pictures of the runs side by side: outcomes, times, speed."""
    return (*outcomes(runs), *times(runs), *speed(runs))
