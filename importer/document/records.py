"""The records in a receipt, with their keys and types as ``receipt.schema.json`` has them.

No key is certain: a file on disk may be damaged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from importer.document.document import Document, Engine, Settings


class Overruled(TypedDict, total=False):
    """A value that lost against the decision."""

    value: Any
    source: str
    why: str


class DecisionRecord(TypedDict, total=False):
    """A decision with its reasons."""

    value: Any
    status: str
    why: Sequence[str]
    overruled: Sequence[Overruled]
    reasons: Sequence[Settings]


class ProofVerdict(TypedDict):
    """What a proof found of one parser; ``lost`` is the first needed case that failed, with the problem."""

    parser: str
    passed: Sequence[str]
    failed: Mapping[str, str]
    lost: str | None


class Fact(TypedDict, total=False):
    """A piece of evidence."""

    rule: str
    key: str
    value: Any
    source: str
    message: str
    quote: str


class ReviewRecord(TypedDict, total=False):
    """What a person said about the data with that digest."""

    state: str
    by: str | None
    at: str | None
    digest: str | None
    note: str | None


class Approved(ReviewRecord, total=False):
    """The last approval, with the data that it is for."""

    data: Document


class OutcomeRecord(TypedDict, total=False):
    """What a probe found."""

    probe: str
    outcome: str
    reason: str
    attribution: str | None
    remedy_message: str
    cause: Settings
    remedy: Settings | None
    trials: int
    agreed: int
    interval: Sequence[float] | None
    seconds: float
    lesson: str
    log: str
    exchanges: Sequence[Settings]
    package: str
    tried: Settings | None
    ability: str


class AbilityRecord(TypedDict):
    """How often the model did what was asked."""

    shown: int
    asked: int
    interval: Sequence[float] | None


class FormRecord(TypedDict):
    """A form of calls that was tried on the model, as ``CallForm.to_json`` returns it."""

    parser: str | None
    right: int
    asked: int
    template: str
    digest: str
    choice: str
    spelling: Mapping[str, str]


class Carried(TypedDict):
    """The earlier commit that was run."""

    revision: str
    digest: str


class Partial(TypedDict, total=False):
    """What a partial run asked: the probes, the address of a server that runs elsewhere, its model's name."""

    probes: Sequence[str]
    against: str | None
    model: str


class Report(TypedDict, total=False):
    """The report of a validation."""

    digest: str
    passed: bool
    carried: Carried
    partial: Partial
    fit: Mapping[str, Mapping[str, float]] | None
    weights: Mapping[str, str]
    run: Settings
    engine: Engine
    remote: Mapping[str, str]
    started: str
    seconds: Mapping[str, float]
    speed: Settings
    outcomes: Sequence[OutcomeRecord]
    contract: str
    health: str
    abilities: Mapping[str, AbilityRecord]
    observed: Sequence[FormRecord]
