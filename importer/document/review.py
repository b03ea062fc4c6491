"""Reviews: the content of a document that a person is shown, and the record of an approval or a rejection.

The state of a validation: the newest whole run on the document's own engine, of its present data and
weights.

A validation that holds for a new commit, too: the files that an engine reads are the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from importer.backends import serves
from importer.document.attention import Attention, AttentionReason, granted
from importer.document.document import Carried, Document, Report
from importer.document.document_keys import ABSENT, Change, canonical, differences, dotted, parser
from importer.document.effective import decisions, refutation
from importer.document.receipt import KEPT, Receipt, ReviewEntry
from importer.document.schema import problems
from importer.document.store import Store, StoredDocument
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import Rule
from importer.signals.tables import PARSERS


class HoldingReason(ReasonKind):
    """Why a validation does not hold, or did not pass."""

    EDITED = "edited", "it was edited since it was validated"
    FAILED = (
        "failed",
        lambda fields: f"its validation failed: {', '.join(fields['probes']) or 'no probe applied'}",
    )
    OTHER_ENGINE = "other-engine", "it ran on {ran}, and the document is for {meant}"
    OTHER_VERSION = "other-version", "it ran on {engine} {ran}, and the document is for {meant}"
    OTHER_WEIGHTS = "other-weights", "it ran on other weights ({files:and})"
    NEW_FILES = "new-files", "{files:and} were written since, and not compared yet"


@frozen
class ValidationStatus:
    """``state``, ``why`` it is stale or failed, and the deciding ``run``, if it was on that engine."""

    state: Literal["never", "passed", "failed", "stale"]
    why: Reason | None = None
    run: Report | None = None

    @property
    def carried(self) -> Carried | None:
        """Return the commit and the digest that were run, where those are of an earlier commit."""
        return None if self.run is None or self.state == "stale" else self.run.get("carried")


def validation(receipt: Receipt, data: Document, digest: str) -> ValidationStatus:
    """Return the state that the receipt's runs give a document with these data and this digest."""
    if not receipt.runs:
        return ValidationStatus("never")
    others = [_other_engine(data, run) for run in receipt.runs]
    if None not in others:
        return ValidationStatus("stale", others[0])
    run = receipt.runs[others.index(None)]
    if run.get("digest") != digest:
        return ValidationStatus("stale", Reason(HoldingReason.EDITED), run)
    other = _other_weights(receipt, run)
    if other is not None:
        return ValidationStatus("stale", other, run)
    if run["passed"]:
        return ValidationStatus("passed", None, run)
    bad = tuple(o["probe"] for o in run.get("outcomes", ()) if o["outcome"] in ("fail", "inconclusive"))
    return ValidationStatus("failed", Reason(HoldingReason.FAILED, probes=bad), run)


def _other_weights(receipt: Receipt, run: Report) -> Reason | None:
    """Return why a run was not of the present weights; ``None`` where it was, or where that is unknown.

    Weights in a folder are compared by their kept digests and never read: a list of documents stays quick.
    """
    from importer.hub import digests

    imported = receipt.weights
    ran = run.get("weights") or imported
    others = [path for path, was in imported.items() if ran.get(path, was) != was]
    if others:
        return Reason(HoldingReason.OTHER_WEIGHTS, files=tuple(others))
    if receipt.directory is None:
        return None
    present = digests.known(Path(receipt.directory), ran)
    others = [path for path, now in present.items() if now not in (None, ran[path])]
    if others:
        return Reason(HoldingReason.OTHER_WEIGHTS, files=tuple(others))
    unread = tuple(path for path, now in present.items() if now is None)
    return Reason(HoldingReason.NEW_FILES, files=unread) if unread else None


def _other_engine(data: Document, run: Report) -> Reason | None:
    """Return why a run was not of the document's engine; ``None`` where it was, or where that is unknown."""
    ran = run.get("engine") or {}
    block = data.get("importer")
    target = (block.get("engine") if isinstance(block, Mapping) else None) or {}
    backend = data.get("backend") or target.get("name")
    if None not in (backend, ran.get("name")) and not serves(ran["name"], backend):
        return Reason(HoldingReason.OTHER_ENGINE, ran=ran["name"], meant=backend)
    if (
        target.get("version")
        and ran.get("version")
        and _release(target["version"]) != _release(ran["version"])
    ):
        return Reason(
            HoldingReason.OTHER_VERSION, engine=ran["name"], ran=ran["version"], meant=target["version"]
        )
    return None


def _release(version: str) -> str:
    """Return a version without its build: 0.32.0 for 0.32.0+cpu."""
    return version.partition("+")[0]


def carry_over(receipt: Receipt, data: Document, digest: str, old: StoredDocument) -> Receipt:
    """Return a new import's receipt with the validation of ``old``, if that holds for the new commit.

    It does where both commits have one digest of content, and the documents differ in the commit alone. The
    run keeps the commit and the digest that it ran on (``carried``).
    """
    last = old.receipt
    if last is None or None in (last.content, last.revision, receipt.revision):
        return receipt
    if last.content != receipt.content or last.revision == receipt.revision or digest == old.digest:
        return receipt
    if canonical(old.data).replace(str(last.revision), str(receipt.revision)) != canonical(data):
        return receipt
    held = validation(last, old.data, old.digest)
    if held.run is None or held.state not in ("passed", "failed"):
        return receipt
    ran = held.run.get("carried") or cast("Carried", {"revision": last.revision, "digest": old.digest})
    others = [run for run in last.runs if run["engine"] != held.run["engine"]]
    whole: Report = {**held.run, "digest": digest, "carried": ran}
    return replace(receipt, validation=whole, earlier=others[:KEPT])


def carried(stored: StoredDocument) -> dict[str, str] | None:
    """Return the earlier commit and digest that a document's validation ran on; ``None`` for its own."""
    if stored.receipt is None:
        return None
    found = validation(stored.receipt, stored.data, stored.digest).carried
    return None if found is None else {key: str(found[key]) for key in ("revision", "digest")}


class ReviewReason(ReasonKind):
    """What requires a reviewer's attention."""

    READS_LESS = "reads-less", "{key}: in pieces it reads less: {finding}"
    STALE = "stale", "its validation does not hold: {why}"
    PROBE = "probe", "probe {probe}: {outcome}: {reason}"


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
