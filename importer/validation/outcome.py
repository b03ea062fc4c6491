"""What a probe found: pass, fail, not applicable or inconclusive, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, TypeVar

from importer.engines.deaths import Attribution
from importer.messages import render
from importer.reasons import Reason

Evidence = tuple[Mapping[str, Any], ...]  # raw exchanges, as ``client.Exchange.to_json`` gives them
Z = 1.959964  # the normal distribution's quantile for 95 %, both sides


def wilson(agreed: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % score interval for a share, ``agreed`` of ``trials`` having been seen; ``None`` without
    any.

    Wilson, *Probable inference, the law of succession, and statistical inference*, JASA 22 (1927).
    """
    if trials < 1:
        return None
    share, spread = agreed / trials, Z * Z / trials
    centre = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


class _Told:
    """What all outcomes share.

    ``trials``   of these ``agreed`` said the same as the outcome; all, unless given.
    ``within``   names of what was asked, the outermost first: a way, a prompt, a turn.
    ``notes``    what else was found, after the reason.
    ``follows``  the probes that show the cause of it.
    """

    __slots__ = ()
    reason: Reason
    trials: int
    agreed: int | None
    within: tuple[str, ...]
    notes: tuple[Reason, ...]
    follows: tuple[str, ...]

    @property
    def agreeing(self) -> int:
        """Return how many trials said the same."""
        return self.trials if self.agreed is None else self.agreed

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between what shares of all answers those lie that say the same, at 95 %."""
        return wilson(self.agreeing, self.trials)

    @property
    def reasons(self) -> Iterator[Reason]:
        """Reason and notes, and the reasons that are fields of them."""
        for reason in (self.reason, *self.notes):
            yield from _all(reason)

    def gives(self, *kinds: StrEnum) -> bool:
        """Return whether one of these kinds is among its reasons."""
        return any(reason.kind is kind for reason in self.reasons for kind in kinds)


def _all(value: object) -> Iterator[Reason]:
    if isinstance(value, Reason):
        yield value
        for inner in value.fields.values():
            yield from _all(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _all(inner)


@dataclass(frozen=True, slots=True)
class Pass(_Told):
    """What was served is what the document says."""

    reason: Reason
    trials: int = 1
    evidence: Evidence = ()
    attribution: None = None
    remedy: None = None
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    outcome: Literal["pass"] = "pass"


@dataclass(frozen=True, slots=True)
class Fail(_Told):
    """It is not; ``attribution`` names the part at fault, ``remedy`` the change that would help."""

    reason: Reason
    attribution: Attribution
    remedy: Reason | None = None
    trials: int = 1
    evidence: Evidence = ()
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    outcome: Literal["fail"] = "fail"


@dataclass(frozen=True, slots=True)
class NotApplicable(_Told):
    """The document does not promise what this probe looks for."""

    reason: Reason
    trials: int = 0
    evidence: Evidence = ()
    attribution: None = None
    remedy: None = None
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    outcome: Literal["not-applicable"] = "not-applicable"


@dataclass(frozen=True, slots=True)
class Inconclusive(_Told):
    """It could not be told; ``attribution`` names the part that kept it from being told."""

    reason: Reason
    attribution: Attribution
    remedy: Reason | None = None
    trials: int = 1
    evidence: Evidence = ()
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    outcome: Literal["inconclusive"] = "inconclusive"


Outcome = Pass | Fail | NotApplicable | Inconclusive
Found = TypeVar("Found", Pass, Fail, NotApplicable, Inconclusive, Outcome)


def counts_as_passed(outcome: Outcome) -> bool:
    """Strict: an inconclusive probe has proved nothing."""
    return isinstance(outcome, Pass | NotApplicable)


def asks_for(outcome: Outcome, *remedies: StrEnum) -> bool:
    """Return whether the outcome's remedy is of one of these kinds."""
    return outcome.remedy is not None and any(outcome.remedy.kind is remedy for remedy in remedies)


def named(outcome: Found, name: str) -> Found:
    """Return the outcome of what was asked under this name."""
    return replace(outcome, within=(name, *outcome.within))


def failing(outcome: Outcome, attribution: Attribution, remedy: Reason | None = None, *notes: Reason) -> Fail:
    """Return a failure with the reason of another outcome, and further notes."""
    return Fail(
        outcome.reason,
        attribution,
        remedy,
        outcome.trials,
        outcome.evidence,
        outcome.agreed,
        outcome.within,
        (*outcome.notes, *notes),
        outcome.follows,
    )


@dataclass(frozen=True, slots=True)
class ProbeRow:
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
        """Return one entry of the receipt's ``outcomes``."""
        return {
            "probe": self.probe,
            "outcome": self.outcome.outcome,
            "reason": told(self.outcome),
            "attribution": self.outcome.attribution,
            "remedy_message": "" if self.outcome.remedy is None else render(self.outcome.remedy),
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
    rows: tuple[ProbeRow, ...]
    partial: Mapping[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """No failure and nothing inconclusive among what applies, and something did apply."""
        outcomes = [row.outcome for row in self.rows]
        return all(map(counts_as_passed, outcomes)) and any(o.outcome == "pass" for o in outcomes)

    def to_json(self) -> dict[str, Any]:
        """Return the receipt's ``validation`` section, but for the digest it belongs to."""
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
    """Return the reason in words: of what it is, what else was found, and what it follows from."""
    said = ": ".join([*outcome.within, render(outcome.reason)])
    return "; ".join([said, *map(render, outcome.notes), *(f"see {probe}" for probe in outcome.follows)])


def _rounded(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else [round(share, 3) for share in interval]
