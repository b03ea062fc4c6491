"""Types of decisions: chosen, known to be none, or unknown, with reasons; targets and preferences.

Decisions on plain settings, by the precedence of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.engine_capabilities import UNKNOWN, Abilities
from importer.signals.evidence import Evidence, Rule, Status, is_warning


def _lost(fields: Fields) -> str:
    """{engine} loses or refuses part of {count} of {of} conversations: {first}"""
    count = "one" if fields["count"] == 1 else str(fields["count"])
    of = f"{count} of {fields['of']} conversations: {fields['first']}"
    return f"{fields['engine']} loses or refuses part of {of}"


class PromptVerdict(ReasonKind):
    """What a frontend's prompts as a whole show."""

    FORMAT = (
        (
            "{engine} with contents {form} renders {equal} of {of} conversations as transformers does; with "
            "its own choice {lost} lose text"
        ),
        "{engine}",
    )
    DIFFER = "{engine} renders {equal} of {of} conversations as transformers does, and loses no text; {first}"
    LOST = (_lost,)
    NOT_STARTED = "the prompts of the frontend are not known: {problem}"
    OTHER_PROMPT = "{engine} renders the prompt otherwise: {first}", "prompts differ"


@frozen
class RejectedCandidate:
    """A rejected value, with its source and the reason."""

    value: Any
    source: str
    why: Reason


@frozen
class Chosen:
    """A chosen value with its status."""

    value: Any
    status: Status
    why: tuple[Reason, ...]
    overruled: tuple[RejectedCandidate, ...] = ()


@frozen
class KnownNone:
    """The key is known to have no value."""

    why: tuple[Reason, ...]
    overruled: tuple[RejectedCandidate, ...] = ()
    value: None = None
    status: Literal["none"] = "none"


@frozen
class Undecided:
    """The value is unknown; ``why`` names the missing evidence."""

    why: tuple[Reason, ...]
    overruled: tuple[RejectedCandidate, ...] = ()
    value: None = None
    status: Literal["unknown"] = "unknown"


# The servers of vLLM: one in Python, and from 0.33 on one in Rust with other parsers and another renderer.
Frontend = Literal["python", "rust"]
PYTHON: Frontend = "python"
RUST: Frontend = "rust"
FRONTENDS = (PYTHON, RUST)
Decision = Chosen | KnownNone | Undecided
Decisions = Mapping[str, Decision]


@frozen
class Target:
    """The engine of a document.

    ``backend``   one of ``backends.NAMES``.
    ``version``   the engine version of the registry; ``None`` for an unknown registry.
    ``parsers``   field (``tool_parser``, ``reasoning_parser``) to its registered names and their classes;
                  a field that is absent has no registry to check against.
    ``proves``    whether the engine is installed, so its parsers take part in a proof.
    ``runs``      whether importer can install and start it.
    ``able``      abilities of this version.
    ``templates`` conventions that the engine can read, for models with a template without tools.
    ``frontend``  the server of this version of vLLM; ``None`` where there is only one.
    ``elsewhere`` the parsers of its other frontend, like ``parsers``.
    ``joint``     parsers that read calls and reasoning in one: the frontend starts with both or none.
    ``guessed``   the reasoning parser that the frontend takes by the model's id where the document has none.
    ``built_in``  whether the frontend reads this model by code of its own, and rejects every parser by name.
    ``unfetched`` why the parsers of this version could not be fetched.
    """

    backend: str
    version: str | None = None
    parsers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    proves: bool = False
    runs: bool = True
    able: Abilities = UNKNOWN
    templates: tuple[str, ...] = ()
    frontend: Frontend | None = None
    elsewhere: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    joint: frozenset[str] = frozenset()
    unfetched: Reason | None = None
    guessed: str | None = None
    built_in: bool = False

    @property
    def engine(self) -> str:
        """Return backend and version for people: ``vllm 0.33.0``."""
        return f"{self.backend} {self.version}"

    def has(self, key: str, name: str) -> bool:
        """Return whether this engine version can load the parser."""
        return key not in self.parsers or name in [*self.parsers[key]]  # a receipt may hold any value

    def same_class(self, key: str, one: str, other: str) -> bool:
        """Return whether two names load one class and are interchangeable."""
        names = self.parsers.get(key, {})
        return one == other or (one in names and names.get(one) == names.get(other))


@frozen
class Preferences:
    """The user's values, by key or dotted YAML path; they have the highest precedence.

    ``unset`` are keys and paths with dropped earlier values. ``template`` is the name of the override of the
    model's own chat template: a convention, or ``file``.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    template: str | None = None


class WeighReason(ReasonKind):
    """Reasons why a value won or lost."""

    SET_BY_USER = "set by the user", "set by user"
    USER_DECIDES = "the user decides"
    STANDS_BESIDE = "{words} stands beside it"
    HIGHER_PRECEDENCE = "{source} comes before it"
    LOST = "{why}; it said: {said}"


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
