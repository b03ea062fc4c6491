"""Plain settings: who is heard first, and what the others said."""

from __future__ import annotations

from collections.abc import Sequence

from importer.decide.decision import Chosen, Decision, KnownNone, Overruled, Status
from importer.decide.target import Preferences
from importer.evidence.fact import Evidence

# Rules in the order in which they are heard, with the status their value gets.
HEARD: dict[str, Status] = {
    "kind-architecture": "vendor",
    "kind-files": "vendor",
    "kind-template": "vendor",
    "kind-name": "table",
    "kind-tag": "vendor",
    "kind-kind": "engine-default",
    "fit": "engine-default",
    "generation-config": "vendor",
    "config": "vendor",
    "card-header": "vendor",
    "card": "vendor",
    "card-example": "vendor",
    "files": "vendor",
    "family-table": "table",
    "base-model-family": "table",
    "sampling-table": "table",
    "generation-config-implied": "vendor",
    "generation-config-usual": "vendor",
    "end-tokens": "vendor",
    "end-of-turn": "vendor",
    "machine": "engine-default",
    "fits": "engine-default",
    "tokenizer": "vendor",
    "importer": "table",
    "engine": "engine-default",
}


def rank(rule: str) -> int:
    """Position of a rule in ``HEARD``; unknown rules come last."""
    return list(HEARD).index(rule) if rule in HEARD else len(HEARD)


def decide_setting(key: str, facts: Sequence[Evidence], preferences: Preferences) -> Decision:
    """The user first, then the vendor's files, then the tables; whoever differs is shown as overruled.

    Zero and false are values. Facts are compared by value, so agreement is not reported as a conflict.
    """
    ordered = sorted(facts, key=lambda e: rank(e.rule))
    if key in preferences.values:
        value = preferences.values[key]
        lost = overruled(value, ordered, "the user decides")
        return by_user(value, lost, tuple(e.says for e in ordered if e.value == value and is_warning(e.says)))
    first = ordered[0]
    agreeing = tuple(e.says for e in ordered if e.value == first.value)
    apart = [e for e in ordered[1:] if e.source != first.source]
    beside = [e for e in ordered[1:] if e.source == first.source]
    lost = (
        *overruled(first.value, beside, f"{first.quote or first.rule} stands beside it"),
        *overruled(first.value, apart, f"{first.source} is heard first"),
    )
    if first.value is None:
        return KnownNone(agreeing, lost)
    return Chosen(first.value, HEARD.get(first.rule, "table"), agreeing, lost)


def is_warning(reason: str) -> bool:
    """Whether a reason tells of something that will go wrong."""
    return reason.startswith("warning: ")


def by_user(value: object, lost: tuple[Overruled, ...] = (), warnings: tuple[str, ...] = ()) -> Decision:
    """What the user set; null says that there is to be none."""
    said = ("set by the user", *warnings)
    return KnownNone(said, lost) if value is None else Chosen(value, "user", said, lost)


def overruled(value: object, facts: Sequence[Evidence], why: str) -> tuple[Overruled, ...]:
    """The facts that offered something else."""
    return tuple(Overruled(e.value, e.source, f"{why}; it said: {e.says}") for e in facts if e.value != value)
