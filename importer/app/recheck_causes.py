"""Why a decision has changed: the recorded evidence against the new; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.config_file.diff import shown
from importer.config_file.document_keys import OPTIONS
from importer.decisions.decision import Target
from importer.decisions.parsers import Unavailable
from importer.proof.result import ProofReason
from importer.reasons import Reason, ReasonKind
from importer.signals.evidence import Rule
from importer.signals.reasons import FIELDS

Facts = Sequence[Mapping[str, Any]]  # evidence as it stands in receipts
RULES = frozenset(str(rule) for rule in Rule)  # a receipt of another importer may have others
UNPROVED = (
    ProofReason.NOT_PROVED, Unavailable.NOTHING_RENDERED, Unavailable.NOT_RUN_HERE, Unavailable.NOT_INSTALLED,
    Unavailable.NOT_KNOWN,
)  # fmt: skip


class RecheckReason(ReasonKind):
    """What changed that a decision rests on."""

    BACKEND = "backend", "it is decided for {backend} now"
    NO_SUCH_PARSER = (
        "no-such-parser",
        lambda fields: f"{fields['engine']} has no {FIELDS[fields['field']]} named {fields['parser']}",
    )
    NEW_PARSER = (
        "new-parser",
        lambda fields: (
            f"{fields['engine']} has the {FIELDS[fields['field']]} {fields['parser']}, "
            f"which {fields['before']} has not"
        ),
    )
    NOT_PROVED = "not-proved", "not proved now"
    NOT_READ = "not-read", "{engine} does not read the template with {parser}: {problem}"
    READ_OTHERWISE = "read-otherwise", "{says}"
    NEW = "new", "new: {says}"
    CHANGED = "changed", "{source} now says {now}; it said {then}"
    GONE = "gone", "no longer: {says}"
    OTHER_IMPORTER = "other-importer", "importer {now} weighs the same evidence otherwise than {then} did"
    WEIGHED_OTHERWISE = "weighed-otherwise", "the same evidence is weighed otherwise now"


@dataclass(frozen=True, slots=True)
class Side:
    """One decision at one time: itself, the facts on it, and the engine it was made for."""

    decision: Mapping[str, Any]
    facts: Facts
    target: Target
    importer: str

    @property
    def value(self) -> Any:
        """Return the value; ``None`` without a decision."""
        return self.decision.get("value")

    def proof(self) -> Mapping[str, Any] | None:
        """Return the proof of the engine's parsers, if it was run."""
        proof = next((f for f in self.facts if f["rule"] == Rule.PROOF), None)
        return proof if proof is not None and proof["value"].get("asked") else None


def reasons(key: str, old: Side, new: Side, why: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return what changed that this decision rests on, whose own reasons now are ``why``; never empty."""
    changes = [*_registries(key, old, new), *_proofs(old, new, why), *_facts(old, new)]
    if not changes and old.target.backend != new.target.backend:
        changes = [Reason(RecheckReason.BACKEND, backend=new.target.backend)]
    if not changes and not new.facts:
        changes = list(why[:1])
    return tuple(changes) or (_weighed(old, new),)


def _registries(key: str, old: Side, new: Side) -> Iterator[Reason]:
    """Yield a name that one version of the engine has and the other lacks."""
    if key not in OPTIONS or old.target.backend != new.target.backend:
        return
    if old.value is not None and not new.target.has(key, old.value):
        yield Reason(RecheckReason.NO_SUCH_PARSER, engine=_engine(new), field=key, parser=old.value)
    if new.value is not None and not old.target.has(key, new.value):
        yield Reason(
            RecheckReason.NEW_PARSER, engine=_engine(new), field=key, parser=new.value, before=_engine(old)
        )


def _proofs(old: Side, new: Side, why: Sequence[Reason]) -> Iterator[Reason]:
    before, after = old.proof(), new.proof()
    if after is None:
        if before is not None:
            unproved = [reason for reason in why if reason.kind in UNPROVED]
            yield from unproved or [Reason(RecheckReason.NOT_PROVED)]
        return
    refuted = after["value"].get("refuted", {}).get(old.value)
    if refuted:
        yield Reason(RecheckReason.NOT_READ, engine=after["source"], parser=old.value, problem=refuted)
    elif before is None or before["value"].get("reads") != after["value"].get("reads"):
        yield Reason(RecheckReason.READ_OTHERWISE, says=after["message"])


def _facts(old: Side, new: Side) -> Iterator[Reason]:
    """Yield the evidence of a file or a table that is different, new or missing."""
    missing = _unmatched(old.facts, new.facts)
    for fact in _unmatched(new.facts, old.facts):
        was = next((g for g in missing if (g["rule"], g["source"]) == (fact["rule"], fact["source"])), None)
        if was is None:
            yield Reason(RecheckReason.NEW, says=fact["message"])
        else:
            missing.remove(was)
            now, then = _brief(fact, was)
            yield Reason(RecheckReason.CHANGED, source=fact["source"], now=now, then=then)
    for fact in missing:
        yield Reason(RecheckReason.GONE, says=fact["message"])


def rules_moved(old: Side, new: Side) -> tuple[Rule, ...]:
    """Return the rules of the evidence that is new, different or missing."""
    facts = (*_unmatched(new.facts, old.facts), *_unmatched(old.facts, new.facts))
    return tuple(dict.fromkeys(Rule(fact["rule"]) for fact in facts if fact["rule"] in RULES))


def _unmatched(facts: Facts, others: Facts) -> list[Mapping[str, Any]]:
    """Return facts without an equal among the others, apart from their text; the proof is compared
    elsewhere.
    """
    known = {_identity(f) for f in others}
    return [f for f in facts if f["rule"] != Rule.PROOF and _identity(f) not in known]


def _identity(fact: Mapping[str, Any]) -> str:
    return json.dumps([fact["rule"], fact["source"], fact["value"], fact["quote"]], sort_keys=True)


def _brief(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, str]:
    """Return the two in short texts that differ: their quotes, else their values."""
    if one["quote"] and other["quote"] and one["quote"] != other["quote"]:
        return str(one["quote"]), str(other["quote"])
    return shown(one["value"]), shown(other["value"])


def _weighed(old: Side, new: Side) -> Reason:
    if old.importer != new.importer:
        return Reason(RecheckReason.OTHER_IMPORTER, now=new.importer, then=old.importer)
    return Reason(RecheckReason.WEIGHED_OTHERWISE)


def _engine(side: Side) -> str:
    return f"{side.target.backend} {side.target.version}"
