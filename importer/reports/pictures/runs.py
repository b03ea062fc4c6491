"""Runs side by side: outcomes of the probes, where the time went, and the speed of the answers.

The matrix of probes and runs: failures first, in columns that fit one screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from importer.frozen import frozen
from importer.reports.pictures.shapes import WIDTH, Bar, Legend, Picture, drawn, number
from importer.reports.report_model import OUTCOMES, ProbeOutcome, Run, duration
from importer.sentences import moment

PARTS = ("start", "probes", "stop")
NAMES = {"not-applicable": "not applicable"}
LEGEND = tuple(Legend(name, NAMES.get(name, name)) for name in OUTCOMES)


def outcomes(runs: Sequence[Run]) -> list[Picture]:
    """Return the outcomes of each run as one bar, all of the length of the longest run."""
    runs = [run for run in runs if run.outcomes]
    if not runs:
        return []
    largest = max(len(run.outcomes) for run in runs)
    bars = [
        Bar(run.label, tuple((name, run.counts[name]) for name in OUTCOMES), _passed(run), largest)
        for run in runs
    ]  # fmt: skip
    rows = tuple(
        (run.label, run.state, moment(run.started), *(str(run.counts[name]) for name in OUTCOMES))
        for run in runs
    )
    label = "; ".join(f"{run.label} ({run.state}): {_passed(run)}" for run in runs)
    height, shapes = drawn(bars)
    heads = ("engine", "state", "when", *(NAMES.get(name, name) for name in OUTCOMES))
    return [Picture("outcomes", "Outcomes", label, WIDTH, height, shapes, LEGEND, heads, rows)]


def _passed(run: Run) -> str:
    return f"{run.counts['pass']} of {len(run.outcomes)} passed"


def times(runs: Sequence[Run]) -> list[Picture]:
    """Return the seconds of start, probes and stop of each run."""
    timed = [run for run in runs if sum(map(number, run.seconds.values())) > 0]
    if not timed:
        return []
    totals = {id(run): sum(map(number, run.seconds.values())) for run in timed}
    largest = max(totals.values())
    bars = [Bar(run.label, _parts(run), duration(totals[id(run)]), largest) for run in timed]
    rows = tuple(
        (run.label, *(duration(number(run.seconds.get(part))) for part in PARTS), duration(totals[id(run)]))
        for run in timed
    )
    label = "; ".join(f"{run.label}: {duration(totals[id(run)])}" for run in timed)
    height, shapes = drawn(bars)
    legend = tuple(Legend(part, part) for part in PARTS)
    heads = ("engine", *PARTS, "in all")
    return [Picture("times", "Time", label, WIDTH, height, shapes, legend, heads, rows)]


def _parts(run: Run) -> tuple[tuple[str, float], ...]:
    return tuple((part if part in PARTS else "ground", number(spent)) for part, spent in run.seconds.items())


def speed(runs: Sequence[Run]) -> list[Picture]:
    """Return tokens per second and the time to the first token of each run that has them."""
    known = [run for run in runs if _rate(run) or _first(run)]
    if not known:
        return []
    fastest, longest = max(map(_rate, known)), max(map(_first, known))
    bars, rows = [], []
    for run in known:
        rate, first = f"{_rate(run):.1f} tokens/s", f"{_first(run):.2f} s to first"
        bars += [
            Bar(run.label, (("rate", _rate(run)),), rate, fastest),
            Bar("", (("first", _first(run)),), first, longest),
        ]
        rows.append((run.label, moment(run.started), f"{_rate(run):.1f}", f"{_first(run):.2f} s"))
    label = "; ".join(f"{name}: {rate} tokens/s, first token {first}" for name, _, rate, first in rows)
    height, shapes = drawn(bars)
    legend = (Legend("rate", "tokens per second"), Legend("first", "time to the first token"))
    heads = ("engine", "when", "tokens/s", "first token")
    return [
        Picture("speed", "Speed of the answers", label, WIDTH, height, shapes, legend, heads, tuple(rows))
    ]


def _rate(run: Run) -> float:
    return number(run.speed.get("tokens_per_second"))


def _first(run: Run) -> float:
    return number(run.speed.get("first_token_seconds"))


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
