"""One line of the table."""

from __future__ import annotations

from dataclasses import dataclass

HEADING = f"{'what':68} {'measured':>14}  {'budget':>14}"


@dataclass(frozen=True)
class Row:
    """What was measured, the figure, the budget, and whether it was met."""

    what: str
    measured: str
    budget: str
    met: bool = True

    def __str__(self) -> str:
        """As it is printed."""
        return f"{self.what:68} {self.measured:>14}  {self.budget:>14}{'' if self.met else '  over'}"
