"""The outcome of a probe: pass, fail, not applicable or inconclusive, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Final, Literal, TypedDict, TypeVar

from importer.engines.deaths import Attribution
from importer.frozen import frozen
from importer.reasons import Reason
from importer.sentences import render
from importer.validation.fact import Facts

# A failure whose judge is contradicted by the rungs of its exchange, and that nothing else explains.
UNEXPLAINED: Final = "unexplained"
BY_ANSWERS: Final = ("engine", "model", UNEXPLAINED)  # whom answers alone may show
Blame = Attribution | Literal["unexplained"]
Z = 1.959964  # the normal distribution's quantile for 95 %, both sides


class ExchangeRow(TypedDict):
    """A request and its answer as an entry of a receipt: see ``client.Exchange``."""

    method: str
    path: str
    request: Mapping[str, object] | None
    status: int | None
    body: str
    seconds: float
    first: float | None
    tokens: int | None
    error: str | None


Evidence = tuple[ExchangeRow, ...]


def wilson(agreed: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % score interval for a share of ``agreed`` in ``trials``; ``None`` without trials.

    Wilson, *Probable inference, the law of succession, and statistical inference*, JASA 22 (1927).
    """
    if trials < 1:
        return None
    share, spread = agreed / trials, Z * Z / trials
    centre = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


class _OutcomeBase:
    """The common part of all outcomes.

    ``trials``   answers that were judged, ``agreed`` of them alike; all, where it is ``None``.
    ``within``   names of the parts of the probe, the outermost first: a way, a prompt, a turn.
    ``notes``    further reasons, after the first.
    ``follows``  the probes that show the cause.
    ``facts``    the rungs of the exchange that the verdict rests on.
    """

    __slots__ = ()
    reason: Reason
    trials: int
    agreed: int | None
    within: tuple[str, ...]
    notes: tuple[Reason, ...]
    follows: tuple[str, ...]
    facts: Facts

    @property
    def agreeing(self) -> int:
        """Return the number of trials with the same outcome."""
        return self.trials if self.agreed is None else self.agreed

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval for the share of all answers with the same outcome."""
        return wilson(self.agreeing, self.trials)

    @property
    def reasons(self) -> Iterator[Reason]:
        """Yield reason and notes, and the reasons among their fields."""
        for reason in (self.reason, *self.notes):
            yield from _all(reason)

    def gives(self, *kinds: StrEnum) -> bool:
        """Return whether one of these kinds is among the reasons."""
        return any(reason.kind is kind for reason in self.reasons for kind in kinds)


def _all(value: object) -> Iterator[Reason]:
    if isinstance(value, Reason):
        yield value
        for inner in value.fields.values():
            yield from _all(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _all(inner)


@frozen
class Pass(_OutcomeBase):
    """The served model does what the document promises."""

    reason: Reason
    trials: int = 1
    evidence: Evidence = ()
    attribution: None = None
    remedy: None = None
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    facts: Facts = ()
    outcome: Literal["pass"] = "pass"


@frozen
class Fail(_OutcomeBase):
    """The served model does not; ``attribution`` is the part at fault, ``remedy`` the change that helps."""

    reason: Reason
    attribution: Blame
    remedy: Reason | None = None
    trials: int = 1
    evidence: Evidence = ()
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    facts: Facts = ()
    outcome: Literal["fail"] = "fail"


@frozen
class NotApplicable(_OutcomeBase):
    """The document does not promise the behaviour that this probe checks."""

    reason: Reason
    trials: int = 0
    evidence: Evidence = ()
    attribution: None = None
    remedy: None = None
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    facts: Facts = ()
    outcome: Literal["not-applicable"] = "not-applicable"


@frozen
class Inconclusive(_OutcomeBase):
    """The probe has no verdict; ``attribution`` names the part that prevents one."""

    reason: Reason
    attribution: Blame
    remedy: Reason | None = None
    trials: int = 1
    evidence: Evidence = ()
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    facts: Facts = ()
    outcome: Literal["inconclusive"] = "inconclusive"


Outcome = Pass | Fail | NotApplicable | Inconclusive
AnyOutcome = TypeVar("AnyOutcome", Pass, Fail, NotApplicable, Inconclusive, Outcome)


def counts_as_passed(outcome: Outcome) -> bool:
    """Return whether an outcome counts as passed; an inconclusive one does not."""
    return isinstance(outcome, Pass | NotApplicable)


def asks_for(outcome: Outcome, *remedies: StrEnum) -> bool:
    """Return whether the outcome's remedy is of one of these kinds."""
    return outcome.remedy is not None and any(outcome.remedy.kind is remedy for remedy in remedies)


def named(outcome: AnyOutcome, name: str) -> AnyOutcome:
    """Return the outcome with ``name`` as its outermost part."""
    return replace(outcome, within=(name, *outcome.within))


def failing(outcome: Outcome, attribution: Blame, remedy: Reason | None = None, *notes: Reason) -> Fail:
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
        outcome.facts,
    )


@frozen
class ProbeRow:
    """The outcome of one probe with its lesson.

    ``seconds``  its duration, with the time for answers that another probe requested.
    ``log``      the errors in the log of the engine meanwhile, where the probe did not pass.
    ``package``  the package that adds the probe; empty for one of importer's own.
    """

    probe: str
    lesson: str
    outcome: Outcome
    seconds: float = 0.0
    log: str = ""
    package: str = ""

    def to_json(self) -> dict[str, object]:
        """Return one entry of the receipt's ``outcomes``."""
        return {
            "probe": self.probe,
            "outcome": self.outcome.outcome,
            "reason": reason_text(self.outcome),
            "attribution": self.outcome.attribution,
            "remedy_message": "" if self.outcome.remedy is None else render(self.outcome.remedy),
            "cause": {
                **_typed(self.outcome.reason),
                "within": list(self.outcome.within),
                "notes": [_typed(note) for note in self.outcome.notes],
                "follows": list(self.outcome.follows),
                "facts": [{**one.to_json(), "text": render(one.reason)} for one in self.outcome.facts],
            },
            "remedy": None if self.outcome.remedy is None else _typed(self.outcome.remedy),
            "trials": self.outcome.trials,
            "agreed": self.outcome.agreeing,
            "interval": _rounded(self.outcome.interval),
            "seconds": round(self.seconds, 3),
            "lesson": self.lesson,
            "log": self.log,
            "exchanges": list(self.outcome.evidence),
            **({"package": self.package} if self.package else {}),
        }


@frozen
class Report:
    """A validation. ``started`` is ISO 8601 in UTC; ``seconds`` has the parts start, probes and stop.

    ``partial`` has the limits of a validation that is not of the whole document: ``probes``, and ``against``,
    the address of a server that importer did not start. ``score``  the quality figures, on request. ``speed``
    has the time of a first token and the tokens in a second.
    """

    engine: Mapping[str, object]
    started: str
    seconds: Mapping[str, float]
    rows: tuple[ProbeRow, ...]
    partial: Mapping[str, object] | None = None
    score: Mapping[str, object] | None = None
    speed: Mapping[str, object] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Return whether an applicable probe passed, and all applicable ones did."""
        outcomes = [row.outcome for row in self.rows]
        return all(map(counts_as_passed, outcomes)) and any(o.outcome == "pass" for o in outcomes)

    def to_json(self) -> dict[str, object]:
        """Return the receipt's ``validation`` section, without the digest of its document."""
        section: dict[str, object] = {
            "engine": dict(self.engine),
            "started": self.started,
            "seconds": {part: round(value, 2) for part, value in self.seconds.items()},
            "speed": dict(self.speed),
            "outcomes": [row.to_json() for row in self.rows],
            "passed": self.passed,
        }
        apart = {"partial": self.partial, "score": self.score}
        return section | {key: dict(value) for key, value in apart.items() if value is not None}


def _typed(reason: Reason) -> dict[str, object]:
    """Return kind and fields of a reason, for programs that read a receipt."""
    fields = reason.to_json()
    return {"kind": fields.pop("kind"), "fields": fields}


def reason_text(outcome: Outcome) -> str:
    """Return the reason as text, with its notes and the probes that it follows from."""
    text = ": ".join([*outcome.within, render(outcome.reason)])
    return "; ".join([text, *map(render, outcome.notes), *(f"see {probe}" for probe in outcome.follows)])


def _rounded(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else [round(share, 3) for share in interval]
