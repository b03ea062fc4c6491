"""Decisions on plain settings, by the precedence of rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from importer.decisions.decision import Chosen, Decision, KnownNone, Preferences, RejectedCandidate
from importer.reasons import Reason, ReasonKind
from importer.signals.evidence import Evidence, Rule, Status, is_warning


class WeighReason(ReasonKind):
    """Reasons why a value won or lost."""

    SET_BY_USER = "set-by-user", "set by the user", "set by user"
    USER_DECIDES = "user-decides", "the user decides"
    STANDS_BESIDE = "stands-beside", "{words} stands beside it"
    HIGHER_PRECEDENCE = "heard-first", "{source} is heard first"
    LOST = "lost", "{why}; it said: {said}"


def ranked(facts: Iterable[Evidence]) -> list[Evidence]:
    """Return the facts in their precedence."""
    return sorted(facts, key=lambda e: e.rule.rank)


def status_of(rule: Rule) -> Status:
    """Return the status of a value by this rule; ``table`` for a rule that is only shown."""
    return rule.status or "table"


def decide_setting(key: str, facts: Sequence[Evidence], preferences: Preferences) -> Decision:
    """Return the user's value, else the vendor's, else the tables'; values that differ are overruled.

    Zero and false are values. Facts are compared by value, so agreement is no conflict.
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
        *overruled(first.value, apart, Reason(WeighReason.HIGHER_PRECEDENCE, source=first.source)),
    )
    if first.value is None:
        return KnownNone(agreeing, lost)
    return Chosen(first.value, status_of(first.rule), agreeing, lost)


def by_user(
    value: object, lost: tuple[RejectedCandidate, ...] = (), warnings: tuple[Reason, ...] = ()
) -> Decision:
    """Return the decision by the user; null means no value."""
    reasons = (Reason(WeighReason.SET_BY_USER), *warnings)
    return KnownNone(reasons, lost) if value is None else Chosen(value, "user", reasons, lost)


def overruled(value: object, facts: Sequence[Evidence], why: Reason) -> tuple[RejectedCandidate, ...]:
    """Return the facts with another value as rejected candidates."""
    return tuple(
        RejectedCandidate(e.value, e.source, Reason(WeighReason.LOST, why=why, said=e.reason))
        for e in facts
        if e.value != value
    )
