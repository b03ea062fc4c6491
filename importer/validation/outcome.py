"""The outcome of a probe: pass, fail, not applicable, not shown or inconclusive, each with its reason.

Facts about one exchange, stage by stage: what was compared, and whether the neighbours agree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, field, fields, replace
from enum import StrEnum
from typing import Any, Final, Literal, TypedDict, TypeVar

from importer.engines.deaths import Attribution
from importer.frozen import frozen
from importer.hub.snapshot import written
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.observed import CallForm


class Stage(StrEnum):
    """The steps from a document to a client's answer, in their order; each compares with the one before.

    ``machine``   what a start and an answer need of it: memory, time, packages, a clock.
    ``files``     the files of the import to those beside the weights.
    ``start``     the document to the settings that the engine runs with.
    ``messages``  the client's request to the one that the server renders.
    ``template``  messages to the text of the prompt, by the template beside the weights.
    ``prompt``    that text to the prompt that the engine reads.
    ``tokens``    a text to its tokens, by the tokenizer beside the weights.
    ``sampled``   a request's options, and a cached beginning, to the tokens that the engine draws.
    ``drawn``     the prompt to the text that the model writes.
    ``parsed``    that text to the reading of the parsers in use, run without the engine.
    ``whole``     that reading to the answer in one piece.
    ``stream``    that reading to the streamed answer.
    ``gateway``   the server's answer to the one that the client gets.
    """

    MACHINE = "machine"
    FILES = "files"
    START = "start"
    MESSAGES = "messages"
    TEMPLATE = "template"
    PROMPT = "prompt"
    TOKENS = "tokens"
    SAMPLED = "sampled"
    DRAWN = "drawn"
    PARSED = "parsed"
    WHOLE = "whole"
    STREAM = "stream"
    GATEWAY = "gateway"


ORDER = tuple(Stage)
ANSWER = (Stage.DRAWN, Stage.PARSED, Stage.WHOLE, Stage.STREAM)  # between the prompt and the answer


State = Literal["holds", "broken", "unseen"]


@frozen
class Fact:
    """One stage of one exchange.

    ``state``   whether it agrees with the stage before it; ``unseen`` where one of the two is not known.
    ``prompt``  the name of the exchange's prompt.
    ``reason``  what was compared.
    """

    stage: Stage
    state: State
    prompt: str
    reason: Reason

    def to_json(self) -> dict[str, object]:
        """Return the fact for programs; a report adds its text."""
        fields = self.reason.to_json()
        return {
            "stage": self.stage.value,
            "state": self.state,
            "prompt": self.prompt,
            "kind": fields.pop("kind"),
            "fields": fields,
        }


Facts = tuple[Fact, ...]


def by_stage(facts: Iterable[Fact]) -> Mapping[Stage, Fact]:
    """Return the facts by stage, in the order of the stages."""
    known = {fact.stage: fact for fact in facts}
    return {stage: known[stage] for stage in ORDER if stage in known}


def first_broken(facts: Iterable[Fact]) -> Fact | None:
    """Return the fact of the first broken stage: all that stands behind it follows."""
    return next((fact for fact in by_stage(facts).values() if fact.state == "broken"), None)


def broken_in_answer(facts: Iterable[Fact]) -> Fact | None:
    """Return the fact of the first broken stage behind the prompt."""
    return first_broken(fact for fact in facts if fact.stage in ANSWER)


# A failure whose judge is contradicted by the stages of its exchange, and that nothing else explains.
UNEXPLAINED: Final = "unexplained"
BY_ANSWERS: Final = ("engine", "model", UNEXPLAINED)  # whom answers alone may show
Blame = Attribution | Literal["unexplained"]
# The part at fault where a stage is the first that does not hold.
PART: Final[Mapping[Stage, Attribution]] = {
    **dict.fromkeys((Stage.MACHINE, Stage.FILES), "environment"),
    **dict.fromkeys((Stage.START, Stage.TEMPLATE, Stage.TOKENS, Stage.PARSED), "configuration"),
    **dict.fromkeys((Stage.MESSAGES, Stage.PROMPT, Stage.SAMPLED), "engine"),
    **dict.fromkeys((Stage.WHOLE, Stage.STREAM, Stage.GATEWAY), "engine"),
    Stage.DRAWN: "model",
}
STAGE: Final[Mapping[Attribution, Stage]] = {  # that a part's own words show, as a log has them
    "environment": Stage.MACHINE, "configuration": Stage.START, "engine": Stage.WHOLE, "model": Stage.DRAWN,
}  # fmt: skip
OF_WEIGHTS: Final = ("simple-answers",)  # the probes whose failure may show damaged weights
Contract = Literal["holds", "broken", "no verdict"]
Health = Literal["whole", "damaged", "no verdict"]
QUOTED = 100  # characters of a value in a reason
BITS = 64  # of a number in a reason
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


class Ability(TypedDict):
    """How often the model did what was asked: ``shown`` of ``asked``, with Wilson's 95 % interval."""

    shown: int
    asked: int
    interval: list[float] | None


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


@frozen
class Tried:
    """A remedy that was tried before it is told: ``right`` of ``asked`` answers were right with it."""

    right: int
    asked: int


@frozen
class _OutcomeBase:
    """The common part of all outcomes.

    ``stage``    the one that does not hold, as far as is seen; ``None`` where none explains the verdict.
    ``remedy``   the change that helps.
    ``trials``   answers that were judged, ``agreed`` of them alike; all, where it is ``None``.
    ``within``   names of the parts of the probe, the outermost first: a way, a prompt, a turn.
    ``notes``    further reasons, after the first.
    ``follows``  the probes that show the cause.
    ``facts``    the stages of the exchange that the verdict rests on.
    ``tried``    what came of the remedy; ``None`` where no request can try it.
    ``part``     that of the cause, where another row or a second start has shown it.
    """

    reason: Reason
    stage: Stage | None = None
    remedy: Reason | None = None
    trials: int = 1
    evidence: Evidence = ()
    agreed: int | None = None
    within: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()
    follows: tuple[str, ...] = ()
    facts: Facts = ()
    tried: Tried | None = None
    part: Blame | None = None

    @property
    def attribution(self) -> Blame | None:
        """Return the part at fault, or that prevents a verdict: of the cause, else of the stage."""
        return self.part or (UNEXPLAINED if self.stage is None else PART[self.stage])

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

    def shows(self, seen: tuple[StrEnum, object]) -> bool:
        """Return whether what another outcome has ``seen`` is among the reasons."""
        return any((reason.kind, reason.fields.get("what")) == seen for reason in self.reasons)

    @property
    def seen(self) -> tuple[StrEnum, object]:
        """Return the kind of the reason, and what was compared."""
        return self.reason.kind, self.reason.fields.get("what")


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

    stage: None = None
    outcome: Literal["pass"] = "pass"

    @property
    def attribution(self) -> None:
        """Return no part."""


@frozen
class Fail(_OutcomeBase):
    """The served model does not: ``stage`` does not hold."""

    stage: Stage | None
    outcome: Literal["fail"] = "fail"


@frozen
class NotApplicable(_OutcomeBase):
    """The document does not promise the behaviour that this probe checks."""

    stage: None = None
    trials: int = 0
    outcome: Literal["not-applicable"] = "not-applicable"

    @property
    def attribution(self) -> None:
        """Return no part."""


@frozen
class Inconclusive(_OutcomeBase):
    """The probe has no verdict; ``stage`` is the one that prevents it."""

    stage: Stage | None
    outcome: Literal["inconclusive"] = "inconclusive"


@frozen
class NotShown(_OutcomeBase):
    """The model does not do what was asked, and every stage read what it wrote: a figure, and no fault.

    ``remedy`` is what was tried and works for this model, where something does.
    """

    stage: Literal[Stage.DRAWN] = Stage.DRAWN
    outcome: Literal["not-shown"] = "not-shown"


Outcome = Pass | Fail | NotApplicable | NotShown | Inconclusive
AnyOutcome = TypeVar("AnyOutcome", Pass, Fail, NotApplicable, NotShown, Inconclusive, Outcome)


def counts_as_passed(outcome: Outcome) -> bool:
    """Return whether an outcome leaves the contract whole; an inconclusive one does not."""
    return isinstance(outcome, Pass | NotApplicable | NotShown)


def asks_for(outcome: Outcome, *remedies: StrEnum) -> bool:
    """Return whether the outcome's remedy is of one of these kinds."""
    return outcome.remedy is not None and any(outcome.remedy.kind is remedy for remedy in remedies)


def not_shown(outcome: Fail | Inconclusive) -> NotShown:
    """Return an outcome of the model as one of its ability."""
    return NotShown(**_parts(outcome), tried=outcome.tried)


def not_compared(outcome: Fail | Inconclusive) -> NotApplicable:
    """Return an outcome of the contract for which the model wrote nothing to compare."""
    return NotApplicable(**_parts(outcome) | {"remedy": None})


def named(outcome: AnyOutcome, name: str) -> AnyOutcome:
    """Return the outcome with ``name`` as its outermost part."""
    return replace(outcome, within=(name, *outcome.within))


def _not_done(fields: Fields) -> str:
    """{what}: {came}"""
    return ": ".join(str(one) for one in map(fields.get, ("what", "came")) if one is not None)


def _differs(fields: Fields) -> str:
    """{what}: {came}, not {expected}"""
    text = f"{fields['what']}: {'none' if fields['came'] is None else fields['came']}"
    return text if fields["expected"] is None else f"{text}, not {fields['expected']}"


class SeenReason(ReasonKind):
    """What a comparison has shown: one wording for all probes."""

    DIFFERS = (_differs,)
    HOLDS = "{what}"
    NOT_DONE = (_not_done,)
    NEEDLESS = "{what}"


def holding(what: str, trials: int = 1, agreed: int | None = None) -> Pass:
    """Return the success of a comparison."""
    return Pass(Reason(SeenReason.HOLDS, what=what), trials=trials, agreed=agreed)


def differs(
    what: str,
    came: object,
    expected: object,
    stage: Stage = Stage.WHOLE,
    remedy: Reason | None = None,
    **more: Any,
) -> Fail:
    """Return the failure of a comparison; ``stage`` is the first that does not hold.

    ``what`` is the same each time, so that two answers can be compared. Without ``expected``, ``came`` alone
    is wrong.
    The remedy of an answer that the server has changed follows from the comparison: see ``cause.settled``.
    """
    return Fail(
        Reason(SeenReason.DIFFERS, what=what, came=_kept(came), expected=_kept(expected)),
        stage,
        remedy,
        **more,
    )


def quoted(value: object) -> str:
    """Return what a server or a model wrote, in quotes, and short."""
    return "none" if value is None else repr(value)[:QUOTED]


def _kept(value: object) -> object:
    """Return a value as a reason keeps it: short, and such as JSON has."""
    if value is None or isinstance(value, Reason) or (isinstance(value, int) and value.bit_length() < BITS):
        return value
    return (value if isinstance(value, str) and value else repr(value))[:QUOTED]


def not_done(what: str, came: object = None, *, trials: int = 1) -> Inconclusive:
    """Return that the model has not done what was asked, so that there is nothing to compare.

    ``came`` is what it wrote; ``what`` is the same each time, so that two answers can be compared.
    """
    return Inconclusive(Reason(SeenReason.NOT_DONE, what=what, came=_kept(came)), Stage.DRAWN, trials=trials)


def note(what: str) -> Reason:
    """Return what else a comparison has shown."""
    return Reason(SeenReason.HOLDS, what=what)


def needless(what: str) -> NotApplicable:
    """Return that there is nothing to compare, whatever the model does."""
    return NotApplicable(Reason(SeenReason.NEEDLESS, what=what))


def failing(outcome: Outcome, stage: Stage | None, remedy: Reason | None = None, *notes: Reason) -> Fail:
    """Return a failure with the reason of another outcome, and further notes."""
    parts = _parts(outcome) | {"remedy": remedy, "notes": (*outcome.notes, *notes)}
    return Fail(stage=stage, **parts)


def _parts(outcome: Outcome) -> dict[str, Any]:
    """Return what an outcome of another kind takes over: all but stage, part and trial of the remedy."""
    apart = ("stage", "part", "outcome", "tried")
    return {one.name: getattr(outcome, one.name) for one in fields(outcome) if one.name not in apart}


@frozen
class ProbeRow:
    """The outcome of one probe with its lesson.

    ``seconds``  its duration, with the time for answers that another probe requested.
    ``log``      the errors in the log of the engine meanwhile, where the probe did not pass.
    ``package``  the package that adds the probe; empty for one of importer's own.
    ``ability``  what of the model the probe shows; empty where it asks for the contract alone.
    """

    probe: str
    lesson: str
    outcome: Outcome
    seconds: float = 0.0
    log: str = ""
    package: str = ""
    ability: str = ""

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
            "tried": None if self.outcome.tried is None else asdict(self.outcome.tried),
            "trials": self.outcome.trials,
            "agreed": self.outcome.agreeing,
            "interval": _rounded(self.outcome.interval),
            "seconds": round(self.seconds, 3),
            "lesson": self.lesson,
            "log": self.log,
            "exchanges": list(self.outcome.evidence),
            **{key: value for key, value in (("package", self.package), ("ability", self.ability)) if value},
        }


@frozen
class Report:
    """A validation. ``started`` is ISO 8601 in UTC; ``seconds`` has the parts start, probes and stop.

    ``partial`` has the limits of a validation that is not of the whole document: ``probes``, and ``against``,
    the address of a server that importer did not start. ``speed`` has the time of a first token and the
    tokens in a second. ``forms`` of calls were tried on the model, the served one first. ``figures`` of
    abilities are those of a thorough run: answers that show one, and all of them.
    """

    engine: Mapping[str, object]
    started: str
    seconds: Mapping[str, float]
    rows: tuple[ProbeRow, ...]
    partial: Mapping[str, object] | None = None
    speed: Mapping[str, object] = field(default_factory=dict)
    forms: tuple[CallForm, ...] = ()
    figures: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Return whether the contract holds, and the weights are not seen to be damaged."""
        return self.contract == "holds" and self.health != "damaged"

    @property
    def contract(self) -> Contract:
        """Return the verdict on all that does not depend on what a model can or knows."""
        rows = [row.outcome for row in self.rows if not _of_weights(row)]
        if any(isinstance(outcome, Fail) for outcome in rows):
            return "broken"
        whole = all(map(counts_as_passed, rows)) and any(isinstance(outcome, Pass) for outcome in rows)
        return "holds" if whole else "no verdict"

    @property
    def health(self) -> Health:
        """Return the verdict on the weights: damaged, and whole, on positive evidence alone.

        Whole are weights that answer every simple question right, and show any ability that is asked for.
        """
        if any(_of_weights(row) for row in self.rows):
            return "damaged"
        asked = [row.outcome for row in self.rows if row.probe in OF_WEIGHTS]
        right = any(isinstance(one, Pass) and one.agreeing == one.trials for one in asked)
        able = [one["shown"] for one in self.abilities.values()]
        return "whole" if right and (any(able) or not able) else "no verdict"

    @property
    def abilities(self) -> dict[str, Ability]:
        """Return how often the model did what it was asked, by ability; what no probe saw is left out."""
        shown: dict[str, list[tuple[int, int]]] = {}
        for row in self.rows:
            if row.ability and isinstance(row.outcome, Pass | NotShown) and row.outcome.trials:
                did = row.outcome.agreeing if isinstance(row.outcome, Pass) else 0
                shown.setdefault(row.ability, []).append((did, row.outcome.trials))
        sums = {name: tuple(map(sum, zip(*seen, strict=True))) for name, seen in shown.items()}
        for form in (one for one in self.forms if not one.template):  # more answers than a probe has
            sums["required" if form.choice == "required" else "tools"] = (form.right, form.asked)
        return {
            name: {"shown": did, "asked": asked, "interval": _rounded(wilson(did, asked))}
            for name, (did, asked) in {**sums, **self.figures}.items()
        }

    def to_json(self) -> dict[str, object]:
        """Return the receipt's ``validation`` section, without the digest of its document."""
        section: dict[str, object] = {
            "engine": dict(self.engine),
            "started": self.started,
            "seconds": {part: round(value, 2) for part, value in self.seconds.items()},
            "speed": dict(self.speed),
            "outcomes": [row.to_json() for row in self.rows],
            "passed": self.passed,
            "contract": self.contract,
            "health": self.health,
            "abilities": self.abilities,
        }
        section |= {} if self.partial is None else {"partial": dict(self.partial)}
        section |= {"observed": [form.to_json() for form in self.forms]} if self.forms else {}
        whole: dict[str, object] = written(json.dumps(section), section)  # answers may hold half an emoji
        return whole


def _of_weights(row: ProbeRow) -> bool:
    """Return whether a row shows damaged weights, or follows from such a row."""
    damaged = isinstance(row.outcome, Fail | Inconclusive) and row.outcome.attribution == "model"
    return damaged and (row.probe in OF_WEIGHTS or any(name in OF_WEIGHTS for name in row.outcome.follows))


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
