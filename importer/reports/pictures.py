"""Figures of a report and of the page: the bar of memory, the map of a proof, the matrix, and tables.

They are computed here once for both front ends. The bar's parts are in hundredths of its width, so that it
fits its page and its texts keep their size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from importer.frozen import frozen
from importer.memory.plan_settings import gib
from importer.memory.plans import held
from importer.reports.report_model import OUTCOMES, ProbeOutcome, ReportModel, Run, duration, mapping, number
from importer.sentences import moment

WHOLE = 100.0
GAP = 0.25  # between two pieces, where both are wider
THINNEST = 0.3
LIMIT = 0.4  # the width of a limit's line


@frozen
class Piece:
    """A part of a bar in hundredths of its width; ``kind`` is its class."""

    kind: str
    x: float
    width: float


@frozen
class Bar:
    """A drawing between its label and its text."""

    label: str
    text: str
    pieces: tuple[Piece, ...]


@frozen
class Legend:
    """The name of what has this class."""

    kind: str
    name: str


@frozen
class Figures:
    """A table, with ``note`` above it; where bars say it faster, they stand before it, in words ``label``."""

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    label: str = ""
    bars: tuple[Bar, ...] = ()
    legend: tuple[Legend, ...] = ()


def mappings(data: object) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; empty for anything else."""
    return [one for one in data if isinstance(one, Mapping)] if isinstance(data, list | tuple) else []


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


def _map(key: str, of: str, verdicts: list[Mapping[str, Any]], chosen: object) -> ProofMap:
    verdicts = sorted(verdicts, key=lambda one: one.get("parser") != chosen)
    cases = tuple(
        dict.fromkeys(case for one in verdicts for case in (*_passed(one), *mapping(one.get("failed"))))
    )
    rows: dict[tuple[bool, tuple[Result, ...]], list[Mapping[str, Any]]] = {}
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
RUN_HEADS = ("engine", "state", "when", *(name.replace("-", " ") for name in OUTCOMES), *PARTS, "in all",
             "tokens/s", "first token")  # fmt: skip


def of_runs(runs: Sequence[Run]) -> tuple[Figures, ...]:
    """Return outcomes, times and speed of the runs, a row each; nothing of one run."""
    rows = tuple(_run_row(run) for run in runs if run.outcomes)
    return (Figures("runs", "Side by side", RUN_HEADS, rows),) if len(rows) >= SEVERAL else ()


def _run_row(run: Run) -> tuple[str, ...]:
    counts = (str(run.counts[name]) for name in OUTCOMES)
    return (run.label, run.state, moment(run.started), *counts,
            *(_seconds(run.seconds.get(part)) for part in PARTS),
            _seconds(sum(map(number, run.seconds.values()))),
            *_speed(run.speed.get("tokens_per_second"), run.speed.get("first_token_seconds")))  # fmt: skip


def _seconds(spent: object) -> str:
    return duration(number(spent)) if number(spent) else ""


def _speed(rate: object, first: object) -> tuple[str, str]:
    return (f"{number(rate):.1f}" if number(rate) else "", f"{number(first):.2f} s" if number(first) else "")


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


def memory(fit: Mapping[str, object]) -> list[Figures]:
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
    of = (heads, tuple(rows), note, note, stacks, (*legend, *limit))
    found = [Figures("memory", "Memory of one device", *of)]
    if sums["high"] < SMALL * largest:
        parts = _stacks(terms, sums, sums["high"])
        of = (heads, tuple(rows), "", label, parts, tuple(legend))
        found.append(Figures("memory-parts", "The parts, enlarged", *of))
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


def measured(runs: Sequence[Run]) -> list[Figures]:
    """Return predicted beside measured for each figure of each run."""
    rows = []
    for run in runs:
        for figure, values in run.fit.items():
            both = mapping(values)
            if not {"predicted", "reported"} <= both.keys():
                continue
            predicted, reported = number(both["predicted"]), number(both["reported"])
            off = f"{(predicted / reported - 1):+.0%}" if reported else ""
            sides = (_amount(figure, predicted), _amount(figure, reported))
            rows.append((figure.replace("_", " "), run.label, *sides, off))
    heads = ("figure", "engine", "predicted", "measured", "difference")
    return [Figures("measured", "Predicted and measured", heads, tuple(rows))] if rows else []


def _amount(figure: str, size: float) -> str:
    return f"{size:,.0f} tokens" if figure.endswith("tokens") else gib(size)


def plans(fit: Mapping[str, object]) -> list[Figures]:
    """Return the chosen plan and the next-best ones with the upper bound of their rates; none of one plan."""
    found = mappings(fit.get("plans"))[:SHOWN]
    if len(found) < SEVERAL:
        return []
    rows = tuple(
        (_parallel(plan), "" if place else "chosen", _count(plan, "devices"), _count(plan, "replicas"),
         _count(plan, "max_model_len"), held(plan), f"≤ {_count(plan, 'tokens_per_second')}",
         "yes" if plan.get("meets") is True else "no", "; ".join(map(str, _list(plan.get("why")))))
        for place, plan in enumerate(found)
    )  # fmt: skip
    heads = (
        "plan",
        "",
        "devices",
        "replicas",
        "context",
        "at the same time",
        "tokens/s",
        "meets the aim",
        "why",
    )
    chosen = _chosen_by(found[0], mapping(fit.get("aim")).get("goal"))
    note = f"Chosen {chosen}. Each rate is an upper bound (calculated), not a measurement."
    return [Figures("plans", "Plans", heads, rows, note)]


def _chosen_by(plan: Mapping[str, object], goal: object) -> str:
    """Return what chose the plan: the goal, or the rule without one (docs/cards.md)."""
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


def of_memory(model: ReportModel) -> tuple[Figures, ...]:
    """Return memory and plans, as far as the document has figures for them."""
    return (*memory(model.fit), *measured(model.runs), *plans(model.fit))
