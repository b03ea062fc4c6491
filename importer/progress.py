"""Steps of long work: how they are reported, and a step whose done part can be counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

Unit = Literal["bytes", "items"]
Progress = Callable[[str], None]  # called with each step


def silent(_step: str) -> None:
    """Report no step."""


class Step(str):
    """A step's text; ``done`` of ``total`` for a front end that shows a bar.

    ``unit`` is what is counted. ``passed`` and ``failed`` are the results so far, where there are any.
    """

    __slots__ = ("done", "failed", "passed", "total", "unit")
    done: float
    total: float
    unit: Unit
    passed: int | None
    failed: int | None

    def __new__(
        cls,
        text: str,
        done: float,
        total: float,
        unit: Unit = "items",
        *,
        passed: int | None = None,
        failed: int | None = None,
    ) -> Self:
        """Return the text with its figures."""
        step = super().__new__(cls, text)
        step.done, step.total, step.unit = done, total, unit
        step.passed, step.failed = passed, failed
        return step

    @property
    def figures(self) -> dict[str, object]:
        """Return the figures as JSON; without the results where there are none."""
        results = {"passed": self.passed, "failed": self.failed}
        known = {name: number for name, number in results.items() if number is not None}
        return {"done": self.done, "total": self.total, "unit": self.unit, **known}
