"""Where a document stands between draft and published: worked out from its receipt, never set by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from importer.document.receipt import Receipt
from importer.document.store import Stored
from importer.errors import DocumentError
from importer.exports.base import Refused
from importer.exports.localai_gallery import Entry, entry

State = Literal["draft", "approved", "validated", "published", "rejected", "stale"]
STATES: tuple[State, ...] = get_args(State)
BUILDS = ("", "-cpu", "-cuda")  # under which names one engine is installed


@dataclass(frozen=True, slots=True)
class Standing:
    """``state``; ``review`` and ``validation`` as receipts tell them; why it is not published.

    ``entry`` is what LocalAI is shown, where it is published.
    """

    state: State
    review: str
    validation: str
    reason: str | None = None
    entry: Entry | None = None


def standing(stored: Stored) -> Standing:
    """A document is published while it is approved, its validation holds, and LocalAI can be given it."""
    receipt = stored.receipt
    if receipt is None:
        return Standing("draft", "no receipt", "never", "it has no receipt")
    review = receipt.state(stored.digest)
    validation, other = _validation(stored, receipt)
    said = f"{receipt.review.get('by')}, {receipt.review.get('at')}"
    if review == "rejected":
        return Standing("rejected", review, validation, f"rejected by {said}: {receipt.review.get('note')}")
    if review == "draft":
        return Standing("draft", review, validation, "nobody has approved it as it is now")
    if review == "stale":
        return Standing("stale", review, validation, f"it was edited since it was approved by {said}")
    if validation == "passed":
        return _published(stored, review)
    if validation == "stale":
        why = other or "it was edited since it was validated"
        return Standing("stale", review, validation, f"its validation does not hold: {why}")
    return Standing("approved", review, validation, other or "it was never validated")


def _published(stored: Stored, review: str) -> Standing:
    try:
        made = entry(stored.data, stored.receipt)
    except DocumentError as error:
        return Standing("validated", review, "passed", error.message)
    if isinstance(made, Refused):
        return Standing("validated", review, "passed", f"LocalAI cannot be given it: {made.reason}")
    return Standing("published", review, "passed", None, made)


def _validation(stored: Stored, receipt: Receipt) -> tuple[str, str | None]:
    """What the last run on the document's own engine says of it as it is now, and why that is not enough."""
    if not receipt.runs:
        return "never", None
    others = [_other_engine(stored.data, run) for run in receipt.runs]
    if None not in others:
        return "stale", others[0]
    run = receipt.runs[others.index(None)]
    found = replace(receipt, validation=run).validated(stored.digest)
    return found, _failed(run) if found == "failed" else None


def _other_engine(data: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
    """Why a run was not of the engine that the document is for; ``None`` where it was."""
    ran = run.get("engine") or {}
    block = data.get("importer")
    meant = (block.get("engine") if isinstance(block, Mapping) else None) or {}
    backend = data.get("backend") or meant.get("name")
    if ran.get("name") not in {f"{backend}{build}" for build in BUILDS}:
        return f"it ran on {ran.get('name')}, and the document is for {backend}"
    if meant.get("version") and ran.get("version") and _plain(meant["version"]) != _plain(ran["version"]):
        return f"it ran on {ran['name']} {ran['version']}, and the document is for {meant['version']}"
    return None


def _plain(version: str) -> str:
    """Without the build: 0.32.0+cpu is 0.32.0."""
    return version.partition("+")[0]


def _failed(run: Mapping[str, Any]) -> str:
    bad = [o["probe"] for o in run.get("outcomes", ()) if o["outcome"] in ("fail", "inconclusive")]
    return f"its validation failed: {', '.join(bad) or 'no probe applied'}"
