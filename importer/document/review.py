"""Reviews: the content of a document that a person is shown, and the record of an approval or a rejection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.document.attention import Attention, AttentionReason, granted
from importer.document.document_keys import ABSENT, Change, differences, dotted, parser
from importer.document.effective import decisions, refutation
from importer.document.receipt import Receipt, ReviewEntry
from importer.document.schema import problems
from importer.document.store import Store, StoredDocument
from importer.document.validation_state import validation
from importer.errors import DocumentError
from importer.reasons import Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import Rule
from importer.signals.tables import PARSERS


class ReviewReason(ReasonKind):
    """What requires a reviewer's attention."""

    READS_LESS = "{key}: in pieces it reads less: {finding}"
    STALE = "its validation does not hold: {why}"
    PROBE = "probe {probe}: {outcome}: {reason}"


def record_review(store: Store, name: str, word: ReviewEntry, seen: str | None = None) -> StoredDocument:
    """Add a person's review of a document to its receipt; return the document of that moment.

    ``seen`` is the digest that the person reviewed. Raises DocumentError: "changed" where the document holds
    other data by now, "invalid" for the approval of a document that does not match its schema.
    """
    with store.locked():
        stored = store.load(name)
        if seen is not None and stored.digest != seen:
            raise DocumentError("changed", path=stored.path, name=name, now=stored.digest, seen=seen)
        if word.state == "approved":
            stored.check()
        receipt = stored.need_receipt().with_review(word, stored.data)
        store.write_receipt(name, receipt)
    return replace(stored, receipt=receipt)


def row(stored: StoredDocument) -> dict[str, object]:
    """Return the document in a list: its model, its backend and its two states."""
    block, receipt = stored.data.get("importer"), stored.receipt
    return {
        "name": stored.name,
        "model": stored.model,
        "revision": block.get("revision") if isinstance(block, Mapping) else None,
        "backend": stored.data.get("backend"),
        "review": stored.review,
        "validation": validation(receipt, stored.data, stored.digest).state if receipt else "never",
    }


def together(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with those of one model one below the other, each with the names of its ``variants``."""
    models: dict[str, list[str]] = {}
    for row in rows:
        models.setdefault(str(row["model"] or row["name"]), []).append(row["name"])
    by_name = {row["name"]: row for row in rows}
    return [
        {**by_name[name], "variants": [other for other in group if other != name]}
        for group in models.values() for name in group
    ]  # fmt: skip


def page(stored: StoredDocument) -> dict[str, object]:
    """Return everything that a reviewer is shown, evidence aside. Raises DocumentError("no-receipt")."""
    receipt = stored.need_receipt()
    approved = receipt.approved
    return {
        **row(stored),
        "path": str(stored.path),
        "digest": stored.digest,
        "problems": [str(p) for p in problems(stored.text, model=stored.facts)],
        "decisions": decisions(stored),
        "fit": receipt.fit,
        "proof": [str(e["message"]) for e in receipt.evidence if e["rule"] == Rule.PROOF],
        "warnings": list(_warnings(stored, receipt)),
        "unknown": receipt.unknown,
        "edited": None if (wrote := receipt.wrote) is None else _changes(wrote, stored.data),
        "approved": None if approved is None else {k: v for k, v in approved.items() if k != "data"},
        "differences": None if approved is None else _changes(approved["data"], stored.data),
        "last_review": receipt.review,
        "history": receipt.history,
    }


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[dict[str, object]]:
    return [change_json(change) for change in differences(before, after)]


def change_json(change: Change) -> dict[str, object]:
    """Return ``path``, ``before``, ``after``; an absent side is left out, for null is a value."""
    sides = {"before": change.before, "after": change.after}
    return {"path": dotted(change.path)} | {k: v for k, v in sides.items() if v is not ABSENT}


def warnings(stored: StoredDocument) -> Iterator[Mapping[str, object]]:
    """Yield what a document warns of now: grants, edited values that the proof refutes, and the import's.

    A warning of the import about a value that a person changed is left out.
    """
    yield from (one.to_json() for one in (*granted(stored.data), *refuted(stored)))
    edited = {*_edited_parsers(stored)}
    yield from (one for one in ([] if stored.receipt is None else stored.receipt.warnings)
                if one.get("key") not in edited)  # fmt: skip


def refuted(stored: StoredDocument) -> Iterator[Attention]:
    """Yield the proof's own line for each parser that a person wrote and the proof refutes."""
    for key in _edited_parsers(stored):
        if (why := refutation(stored.data, stored.need_receipt(), key)) is not None:
            yield Attention(AttentionReason.PARSER, key, why)


def _edited_parsers(stored: StoredDocument) -> Iterator[str]:
    wrote = None if stored.receipt is None else stored.receipt.wrote
    if wrote is not None:
        yield from (key for key in PARSERS if parser(stored.data, key) != parser(wrote, key))


def _warnings(stored: StoredDocument, receipt: Receipt) -> Iterator[str]:
    for warning in warnings(stored):
        told, key = str(warning["message"]), f"{warning['key']}: "
        yield told if told.startswith(str(warning["key"])) else key + told
    block = stored.data.get("importer")
    streaming = block.get("streaming") if isinstance(block, Mapping) else None
    for key, finding in streaming.items() if isinstance(streaming, Mapping) else ():
        yield render(Reason(ReviewReason.READS_LESS, key=key, finding=str(finding)))
    held = validation(receipt, stored.data, stored.digest)
    if held.state == "stale" and held.why is not None:
        yield render(Reason(ReviewReason.STALE, why=held.why))
    for outcome in held.run["outcomes"] if held.run is not None and not held.run["passed"] else ():
        if outcome["outcome"] in ("fail", "inconclusive"):
            probe, ended, why = (str(outcome[name]) for name in ("probe", "outcome", "reason"))
            yield render(Reason(ReviewReason.PROBE, probe=probe, outcome=ended, reason=why))
