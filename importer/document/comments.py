"""The comments of a YAML document: one short line that says why a value stands there."""

from __future__ import annotations

from importer.decide.decision import Decision
from importer.errors import one_line
from importer.messages import render

LONGEST = 100  # characters


def comment(decision: Decision) -> str:
    """One short line: the status, the first reason, and the first number that lost to another."""
    first = one_line(render(decision.why[0])) if decision.why else ""
    beside = _beside(decision)
    room = LONGEST - len(beside)
    text = f"{decision.status}: {first}"
    return (text if len(text) <= room else text[: room - 3].rstrip() + "…") + beside


def _beside(decision: Decision) -> str:
    """The first number that was offered and lost."""
    lost = [o for o in decision.overruled if type(o.value) in (int, float)]
    return f"; not {lost[0].value} ({lost[0].source:.30})" if lost else ""
