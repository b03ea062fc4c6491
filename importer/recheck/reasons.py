"""Why a decision is another one now: the recorded evidence beside the new; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.decide.target import Target
from importer.document.diff import shown
from importer.document.places import OPTIONS

Facts = Sequence[Mapping[str, Any]]  # evidence as it stands in receipts


@dataclass(frozen=True, slots=True)
class Side:
    """One decision at one time: itself, the facts on it, and the engine it was made for."""

    decision: Mapping[str, Any]
    facts: Facts
    target: Target
    importer: str

    @property
    def value(self) -> Any:
        """``None`` where nothing was decided."""
        return self.decision.get("value")

    def proof(self) -> Mapping[str, Any] | None:
        """What the engine's parsers read, where they were asked."""
        found = next((f for f in self.facts if f["rule"] == "proof"), None)
        return found if found is not None and found["value"].get("asked") else None


def reasons(key: str, old: Side, new: Side) -> tuple[str, ...]:
    """What changed that this decision rests on; never empty."""
    found = [*_registries(key, old, new), *_proofs(old, new), *_facts(old, new)]
    if not found and old.target.backend != new.target.backend:
        found = [f"it is decided for {new.target.backend} now"]
    if not found and not new.facts:
        found = list(new.decision.get("why", ()))[:1]
    return tuple(found) or (_weighed(old, new),)


def _registries(key: str, old: Side, new: Side) -> Iterator[str]:
    """A name that one version of the engine has and the other lacks."""
    if key not in OPTIONS or old.target.backend != new.target.backend:
        return
    noun = key.replace("_", " ")
    if old.value is not None and not new.target.has(key, old.value):
        yield f"{_engine(new)} has no {noun} named {old.value}"
    if new.value is not None and not old.target.has(key, new.value):
        yield f"{_engine(new)} has the {noun} {new.value}, which {_engine(old)} has not"


def _proofs(old: Side, new: Side) -> Iterator[str]:
    before, after = old.proof(), new.proof()
    if after is None:
        if before is not None:
            yield from [w for w in new.decision.get("why", ()) if w.startswith("not proved")] or [
                "not proved now"
            ]
        return
    refuted = after["value"].get("refuted", {}).get(old.value)
    if refuted:
        yield f"{after['source']} does not read the template with {old.value}: {refuted}"
    elif before is None or before["value"].get("reads") != after["value"].get("reads"):
        yield str(after["says"])


def _facts(old: Side, new: Side) -> Iterator[str]:
    """What a file or a table says otherwise, says for the first time, or says no more."""
    gone = _unmatched(old.facts, new.facts)
    for fact in _unmatched(new.facts, old.facts):
        was = next((g for g in gone if (g["rule"], g["source"]) == (fact["rule"], fact["source"])), None)
        if was is None:
            yield f"new: {fact['says']}"
        else:
            gone.remove(was)
            now, then = _brief(fact, was)
            yield f"{fact['source']} now says {now}; it said {then}"
    for fact in gone:
        yield f"no longer: {fact['says']}"


def _unmatched(facts: Facts, others: Facts) -> list[Mapping[str, Any]]:
    """Facts that have no equal among the others, wording aside; the proof is told by itself."""
    known = {_identity(f) for f in others}
    return [f for f in facts if f["rule"] != "proof" and _identity(f) not in known]


def _identity(fact: Mapping[str, Any]) -> str:
    return json.dumps([fact["rule"], fact["source"], fact["value"], fact["quote"]], sort_keys=True)


def _brief(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, str]:
    """Each in as few words as tell them apart: their quotes, else their values."""
    if one["quote"] and other["quote"] and one["quote"] != other["quote"]:
        return str(one["quote"]), str(other["quote"])
    return shown(one["value"]), shown(other["value"])


def _weighed(old: Side, new: Side) -> str:
    if old.importer != new.importer:
        return f"importer {new.importer} weighs the same evidence otherwise than {old.importer} did"
    return "the same evidence is weighed otherwise now"


def _engine(side: Side) -> str:
    return f"{side.target.backend} {side.target.version}"
