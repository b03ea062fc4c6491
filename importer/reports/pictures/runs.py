"""Runs side by side: outcomes of the probes, where the time went, and the speed of the answers.

The matrix of probes and runs: failures first, in columns that fit one screen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from importer.frozen import frozen
from importer.reports.pictures.shapes import Legend, Picture, bar, number
from importer.reports.report_model import OUTCOMES, ProbeOutcome, Run, duration
from importer.sentences import moment

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
        bar(run.label, [(name, run.counts[name]) for name in OUTCOMES], _passed(run), largest)
        for run in runs
    ]  # fmt: skip
    rows = tuple(
        (run.label, run.state, moment(run.started), *(str(run.counts[name]) for name in OUTCOMES))
        for run in runs
    )
    label = "; ".join(f"{run.label} ({run.state}): {_passed(run)}" for run in runs)
    heads = ("engine", "state", "when", *(NAMES.get(name, name) for name in OUTCOMES))
    return [Picture("outcomes", "Outcomes", label, tuple(bars), LEGEND, heads, rows)]


def _passed(run: Run) -> str:
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
