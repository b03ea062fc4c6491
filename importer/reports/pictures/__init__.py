"""Pictures of a report and of the page: bars with their texts, computed here once for both.

A front end gives the bars its own width and shows the rows as the table behind them.
"""

from __future__ import annotations

from importer.reports.pictures.figures import history, measured, memory, plans
from importer.reports.pictures.proof import ProofMap, proof_maps
from importer.reports.pictures.runs import MatrixRow, columns, outcomes, rows, speed, times
from importer.reports.pictures.shapes import Bar, Legend, Picture, Piece
from importer.reports.report_model import ReportModel, Run

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
