"""One line of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was measured, the figure, the budget, and whether it was met."""

    what: str
    measured: str
    budget: str
    met: bool = True
