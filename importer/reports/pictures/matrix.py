"""The matrix of probes and runs: failures first, in columns that fit one screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from importer.reports.report_model import ProbeOutcome, Run

ORDER = ("fail", "inconclusive", "pass", "not-applicable")
COLUMNS = 3
FEWEST = 8  # probes of a column, unless it is the only one


@dataclass(frozen=True, slots=True)
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
    for number, run in enumerate(runs, 1):
        for one in run.outcomes:
            found.setdefault(one.probe, (one.lesson, []))[1].append((number, one))
    made = [MatrixRow(probe, lesson, tuple(cells)) for probe, (lesson, cells) in found.items()]
    return sorted(made, key=lambda row: _rank(row.worst))


def columns(found: Sequence[MatrixRow]) -> list[list[MatrixRow]]:
    """Return the rows in up to three columns of about the same length."""
    length = max(FEWEST, -(-len(found) // COLUMNS))
    return [list(found[at : at + length]) for at in range(0, len(found), length)]
