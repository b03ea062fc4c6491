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

    ``unit`` is what is counted. ``passed`` and ``failed`` are the results so far, ``running`` the parts at
    work, ``seconds`` the time since the first of them, where there are any.
    """

    __slots__ = ("done", "failed", "passed", "running", "seconds", "total", "unit")
    done: float
    total: float
    unit: Unit
    passed: int | None
    failed: int | None
    running: tuple[str, ...] | None
    seconds: float | None

    def __new__(
        cls,
        text: str,
        done: float,
        total: float,
        unit: Unit = "items",
        *,
        passed: int | None = None,
        failed: int | None = None,
        running: tuple[str, ...] | None = None,
        seconds: float | None = None,
    ) -> Self:
        """Return the text with its figures."""
        step = super().__new__(cls, text)
        step.done, step.total, step.unit = done, total, unit
        step.passed, step.failed, step.running, step.seconds = passed, failed, running, seconds
        return step

    @property
    def figures(self) -> dict[str, object]:
        """Return the figures as JSON; without the results where there are none."""
        results = {
            "passed": self.passed,
            "failed": self.failed,
            "running": None if self.running is None else list(self.running),
            "seconds": None if self.seconds is None else round(self.seconds, 1),
        }
        known = {name: number for name, number in results.items() if number is not None}
        return {"done": self.done, "total": self.total, "unit": self.unit, **known}
