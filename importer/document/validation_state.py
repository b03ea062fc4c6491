"""The state of a validation: the newest whole run on the document's own engine, of its data and weights.

It holds for a new commit, too, where the files that an engine reads are the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

from importer.backends import serves
from importer.document.document import Document
from importer.document.document_keys import canonical, engine_of
from importer.document.receipt import KEPT, Receipt
from importer.document.records import Carried, Report
from importer.document.store import StoredDocument
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind


class HoldingReason(ReasonKind):
    """Why a validation does not hold, or did not pass."""

    EDITED = "it was edited since it was validated"
    FAILED = (lambda fields: f"its validation failed: {', '.join(fields['probes']) or 'no probe applied'}",)
    OTHER_ENGINE = "it ran on {ran}, and the document is for {meant}"
    OTHER_VERSION = "it ran on {engine} {ran}, and the document is for {meant}"
    OTHER_WEIGHTS = "it ran on other weights ({files:and})"
    NEW_FILES = "{files:and} are new here, and not compared yet"


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
    backend = engine_of(data)
    if backend and ran.get("name") is not None and not serves(ran["name"], backend):
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
