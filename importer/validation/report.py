"""The outcomes of one run, as the receipt keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from importer.messages import render
from importer.reasons import Reason
from importer.validation.outcome import Outcome, counts_as_passed


@dataclass(frozen=True, slots=True)
class Row:
    """One probe's outcome beside the lesson it stands for.

    ``seconds``  it took, waiting for answers that another probe had asked for included.
    ``log``      what the engine's log complained of meanwhile, where the probe did not pass.
    """

    probe: str
    lesson: str
    outcome: Outcome
    seconds: float = 0.0
    log: str = ""

    def to_json(self) -> dict[str, Any]:
        """One entry of the receipt's ``outcomes``."""
        return {
            "probe": self.probe,
            "outcome": self.outcome.outcome,
            "reason": told(self.outcome),
            "attribution": self.outcome.attribution,
            "mend": "" if self.outcome.remedy is None else render(self.outcome.remedy),
            "cause": {
                **_typed(self.outcome.reason),
                "within": list(self.outcome.within),
                "notes": [_typed(note) for note in self.outcome.notes],
                "follows": list(self.outcome.follows),
            },
            "remedy": None if self.outcome.remedy is None else _typed(self.outcome.remedy),
            "trials": self.outcome.trials,
            "agreed": self.outcome.agreeing,
            "interval": _rounded(self.outcome.interval),
            "seconds": round(self.seconds, 3),
            "lesson": self.lesson,
            "log": self.log,
            "exchanges": list(self.outcome.evidence),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A validation. ``started`` is ISO 8601 in UTC; ``seconds`` has the parts start, probes and stop.

    ``partial`` says what it was limited to, where it is not the document's whole validation: ``probes``,
    ``against`` the address of a server that somebody else runs.
    """

    engine: Mapping[str, Any]
    started: str
    seconds: Mapping[str, float]
    rows: tuple[Row, ...]
    partial: Mapping[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """No failure and nothing inconclusive among what applies, and something did apply."""
        outcomes = [row.outcome for row in self.rows]
        return all(map(counts_as_passed, outcomes)) and any(o.outcome == "pass" for o in outcomes)

    def to_json(self) -> dict[str, Any]:
        """The receipt's ``validation`` section, but for the digest it belongs to."""
        told: dict[str, Any] = {
            "engine": dict(self.engine),
            "started": self.started,
            "seconds": {part: round(value, 2) for part, value in self.seconds.items()},
            "outcomes": [row.to_json() for row in self.rows],
            "passed": self.passed,
        }
        return told if self.partial is None else told | {"partial": dict(self.partial)}


def _typed(reason: Reason) -> dict[str, Any]:
    """Kind and fields, for code that reads a receipt."""
    fields = reason.to_json()
    return {"kind": fields.pop("kind"), "fields": fields}


def told(outcome: Outcome) -> str:
    """The reason in words: of what it is, what else was found, and what it follows from."""
    said = ": ".join([*outcome.within, render(outcome.reason)])
    return "; ".join([said, *map(render, outcome.notes), *(f"see {probe}" for probe in outcome.follows)])


def _rounded(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else [round(share, 3) for share in interval]
