"""Steps of long work: how they are reported, and a step whose done part can be counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

Progress = Callable[[str], None]  # called with each step


def silent(_step: str) -> None:
    """Report no step."""


class Step(str):
    """A step's text; ``done`` of ``total`` for a front end that shows a bar."""

    __slots__ = ("done", "total")
    done: float
    total: float

    def __new__(cls, text: str, done: float, total: float) -> Self:
        """Return the text with its figures."""
        step = super().__new__(cls, text)
        step.done, step.total = done, total
        return step
