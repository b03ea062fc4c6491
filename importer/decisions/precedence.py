"""Plain settings: who is heard first, and what the others said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from importer.decisions.decision import Chosen, Decision, KnownNone, Preferences, RejectedCandidate
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Status, is_warning


class WeighReason(StrEnum):
    """Why a value was taken or lost."""

    SET_BY_USER = "set-by-user"
    USER_DECIDES = "user-decides"
    STANDS_BESIDE = "stands-beside"
    HEARD_FIRST = "heard-first"
    LOST = "lost"


def ranked(facts: Iterable[Evidence]) -> list[Evidence]:
    """Return the facts in the order in which they are heard."""
    return sorted(facts, key=lambda e: e.rule.rank)


def status_of(rule: Rule) -> Status:
    """Return the status of a value that rests on the rule; a rule that is only shown founds nothing
    better.
    """
    return rule.status or "table"


def decide_setting(key: str, facts: Sequence[Evidence], preferences: Preferences) -> Decision:
    """Return the user first, then the vendor's files, then the tables; whoever differs is shown as overruled.

    Zero and false are values. Facts are compared by value, so agreement is not reported as a conflict.
    """
    ordered = ranked(facts)
    if key in preferences.values:
        value = preferences.values[key]
        lost = overruled(value, ordered, Reason(WeighReason.USER_DECIDES))
        return by_user(
            value, lost, tuple(e.reason for e in ordered if e.value == value and is_warning(e.reason))
        )
    first = ordered[0]
    agreeing = tuple(e.reason for e in ordered if e.value == first.value)
    apart = [e for e in ordered[1:] if e.source != first.source]
    beside = [e for e in ordered[1:] if e.source == first.source]
    lost = (
        *overruled(first.value, beside, Reason(WeighReason.STANDS_BESIDE, words=first.quote or first.rule)),
        *overruled(first.value, apart, Reason(WeighReason.HEARD_FIRST, source=first.source)),
    )
    if first.value is None:
        return KnownNone(agreeing, lost)
    return Chosen(first.value, status_of(first.rule), agreeing, lost)


def by_user(
    value: object, lost: tuple[RejectedCandidate, ...] = (), warnings: tuple[Reason, ...] = ()
) -> Decision:
    """Return what the user set; null says that there is to be none."""
    said = (Reason(WeighReason.SET_BY_USER), *warnings)
    return KnownNone(said, lost) if value is None else Chosen(value, "user", said, lost)


def overruled(value: object, facts: Sequence[Evidence], why: Reason) -> tuple[RejectedCandidate, ...]:
    """Return the facts that offered something else, each with what it said."""
    return tuple(
        RejectedCandidate(e.value, e.source, Reason(WeighReason.LOST, why=why, said=e.reason))
        for e in facts
        if e.value != value
    )
