"""The effective value of each key of a document: what is there now, who set it, whether its evidence holds
for that value, and what else was offered. Every front end that shows a value takes it from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from importer.document import build, document_keys, template_file
from importer.document.document import Document, Settings
from importer.document.document_keys import (
    ABSENT,
    OPTIONS,
    UNWRITTEN,
    KeyPath,
    differences,
    dotted,
    keyed,
    place,
    same,
)
from importer.document.merge import BOOKKEEPING, DERIVED
from importer.document.receipt import Receipt, proved_by, verdicts_of
from importer.document.records import DecisionRecord, Overruled
from importer.document.store import StoredDocument
from importer.errors import one_line
from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import Rule

EDITED = "edited"  # the status of a value that a person wrote over the import's
OUTDATED = "outdated"  # that of a value whose evidence is of another model, template or engine
MODEL: tuple[KeyPath, ...] = (("parameters", "model"), ("importer", "model_id"), ("importer", "revision"))
ENGINES: tuple[KeyPath, ...] = (("backend",), ("importer", template_file.KEY))
PROVED = ("proved", "engine-default")  # statuses that rest on engine and template
READING = 5  # parsers that are named
Offerer = Literal["vendor", "table", "engine-default"]
OFFERERS: tuple[Offerer, ...] = ("vendor", "table", "engine-default")
ENGINE = "engine_default"


def _refuted_text(fields: Fields) -> str:
    """The proof of {engine} refutes {value}: {problem}; proved: {reads}"""
    reads = f"; proved: {', '.join(fields['reads'])}" if fields["reads"] else ""
    return f"the proof of {fields['engine']} refutes {fields['value']}: {fields['problem']}{reads}"


class EvidenceReason(ReasonKind):
    """Why the evidence of an import does not hold for a value of the document."""

    REFUTED = (_refuted_text,)
    OUTDATED = "{path} was edited after this was decided"


@frozen
class Editor:
    """The person who gave a value its present form, and when (UTC)."""

    by: str
    at: str


# Returns who gave the value at a path its present form, where a history is kept.
Editors = Callable[[KeyPath], Editor | None]


@frozen
class EffectiveValue:
    """One key.

    ``value``     in the document now, ``ABSENT`` where it has none; ``imported`` is the import's.
    ``status``    of the decision, ``edited`` or ``outdated``; ``source`` is the text of the value's comment.
    ``why``       the facts for this value; ``overruled`` are other values, the import's of an edited one.
    ``offers``    value and source of vendor, table and engine, as far as the evidence has them.
    ``served``    in the release that is served, ``ABSENT`` where that has none.
    """

    key: str
    value: Any
    status: str
    source: str
    imported: Any
    offers: Mapping[str, Mapping[str, object]]
    editor: Editor | None = None
    served: Any = ABSENT
    why: tuple[str, ...] = ()
    overruled: tuple[Overruled, ...] = ()
    reasons: tuple[Settings, ...] = ()

    @property
    def decision(self) -> DecisionRecord:
        """Return the value as a decision of the document that it stands in."""
        value = None if self.value is ABSENT else self.value
        return {
            "value": value, "status": self.status, "why": [*self.why], "overruled": [*self.overruled],
            "reasons": [*self.reasons],
        }  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Return the members; an absent value is left out, for null is a value."""
        values = {"value": self.value, "imported": self.imported, "served": self.served}
        editor = {} if self.editor is None else {"by": self.editor.by, "at": self.editor.at}
        return {
            "key": self.key,
            **{name: value for name, value in values.items() if value is not ABSENT},
            "status": self.status, "source": self.source, **editor, **self.offers,
        }  # fmt: skip


def effective(
    data: Document,
    receipt: Receipt,
    served: Mapping[str, object] | None = None,
    editors: Editors | None = None,
    defaults: Mapping[str, Mapping[str, object]] | None = None,
) -> list[EffectiveValue]:
    """Return the decisions of a document in their order, then other keys that a person changed.

    ``served`` are the data of the release that is served; ``defaults`` value and source of the engine's own
    values by key, where the evidence has none.
    """
    wrote, found, covered = receipt.wrote, list[EffectiveValue](), set[KeyPath]()
    moved = () if wrote is None else _moved(wrote, data)
    for key, decision in receipt.decisions.items():
        path = place(key)
        if path is None:
            continue
        covered.add(path)
        imported = ABSENT if wrote is None else value_at(wrote, path)
        if wrote is None:
            imported = ABSENT if decision.get("value") is None else decision["value"]
        one = _value(key, path, data, receipt, imported, decision, served, editors)
        found.append(_outdated(one, moved))
    for change in () if wrote is None else differences(wrote, data):
        at = change.path
        above = any(at[: len(known)] == known or known[: len(at)] == at for known in covered)
        if not above and at not in DERIVED and at[0] not in BOOKKEEPING:
            one = _value(dotted(at), at, data, receipt, change.before, None, served, editors)
            found.append(one)
    return [_with_default(one, (defaults or {}).get(one.key)) for one in found]


def decisions(stored: StoredDocument) -> dict[str, DecisionRecord]:
    """Return each decision for the value that the document has now; remarks are those of the receipt.

    Raises DocumentError("no-receipt").
    """
    receipt = stored.need_receipt()
    return {**receipt.decisions, **{one.key: one.decision for one in effective(stored.data, receipt)}}


def refutation(data: Document, receipt: Receipt, key: str) -> Reason | None:
    """Return the proof's own line against the parser of a key; ``None`` where the proof has none, or is of
    another model, template or engine.
    """
    if receipt.wrote is not None and _moved(receipt.wrote, data):
        return None
    return refuted(document_keys.parser(data, key), mapping(receipt.proof), key)


def refuted(named: str | None, proof: Mapping[str, object], key: str) -> Reason | None:
    """Return what a proof, as receipts hold it, has against a parser; ``None`` where it has nothing."""
    verdicts = verdicts_of(proof, key)
    lost = next((one["lost"] for one in verdicts if one["parser"] == named), None)
    if lost is None:
        return None
    reads = tuple(one["parser"] for one in verdicts if one["lost"] is None)[:READING]
    return Reason(EvidenceReason.REFUTED, engine=proved_by(proof), value=named, problem=lost, reads=reads)


def _moved(wrote: Document, data: Document) -> tuple[KeyPath, ...]:
    """Return the places of model, template and engine that were edited."""
    return tuple(at for at in (*MODEL, *ENGINES) if not same(value_at(wrote, at), value_at(data, at)))


def _outdated(one: EffectiveValue, moved: tuple[KeyPath, ...]) -> EffectiveValue:
    """Return a value of the import as outdated where its evidence is of another model, template or engine."""
    if one.status in (EDITED, "user"):
        return one
    at = next((path for path in moved if path in MODEL or one.status in PROVED), None)
    if at is None:
        return one
    source = render(Reason(EvidenceReason.OUTDATED, path=dotted(at)))
    return replace(one, status=OUTDATED, source=source, why=(source, *one.why))


def _with_default(one: EffectiveValue, default: Mapping[str, object] | None) -> EffectiveValue:
    if default is None or ENGINE in one.offers:
        return one
    return replace(one, offers={**one.offers, ENGINE: default})


def value_at(data: Mapping[str, object], path: KeyPath) -> Any:
    """Return the value at a path as ``differences`` names it; ``ABSENT`` where there is none."""
    if path[0] == document_keys.KEY and len(path) == 2:
        named = document_keys.parser(data, str(path[1]))
        return ABSENT if named is None else named
    inner: Any = data
    for at, step in enumerate(path):
        inner = inner if isinstance(inner, Mapping) else keyed(path[:at], inner)
        if not isinstance(inner, Mapping) or step not in inner:
            return ABSENT
        inner = inner[step]
    return inner


def _value(
    key: str, path: KeyPath, data: Document, receipt: Receipt, imported: Any, decision: DecisionRecord | None,
    served: Mapping[str, object] | None, editors: Editors | None,
) -> EffectiveValue:  # fmt: skip
    value, record = value_at(data, path), decision or {}
    if value is imported is ABSENT and key in UNWRITTEN and decision is not None:
        value = imported = decision.get("value")  # what the engine does by itself
    edited = not same(value, imported)
    editor = editors(path) if edited and editors is not None else None
    why, overruled = tuple(record.get("why") or ()), tuple(record.get("overruled") or ())
    reasons = () if edited else tuple(record.get("reasons") or ())
    status = EDITED if edited or decision is None else str(decision.get("status"))
    source = next(iter(why), status)
    if edited:
        source = build.EDITED if editor is None else f"edited by {one_line(editor.by)}, {editor.at[:10]}"
        was = None if imported is ABSENT else imported
        overruled = ({"value": was, "source": "import", "why": "; ".join(why)},)
        against = refutation(data, receipt, key) if key in OPTIONS else None
        why = (source,) if against is None else (source, render(against))
    return EffectiveValue(
        key, value, status, source, imported, dict(_offers(receipt, key)), editor,
        ABSENT if served is None else value_at(served, path), why, overruled, reasons,
    )  # fmt: skip


def _offers(receipt: Receipt, key: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield value and source of the strongest evidence of vendor, table and engine."""
    ranked = sorted(
        (Rule(e["rule"]).rank, at) for at, e in enumerate(receipt.evidence)
        if e["key"] == key and e["rule"] in set(Rule)
    )  # fmt: skip
    for offerer in OFFERERS:
        for _, at in ranked:
            one = receipt.evidence[at]
            if Rule(one["rule"]).status == offerer:
                yield offerer.replace("-", "_"), {"value": one["value"], "source": one["source"]}
                break
