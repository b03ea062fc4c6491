"""A step of long work: its text, and how much of it is done where that can be counted."""

from __future__ import annotations

from typing import Self


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
