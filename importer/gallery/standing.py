"""Where a document stands between draft and published: worked out from its receipt, never set by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from importer.document.holding import validation
from importer.document.store import Stored
from importer.errors import DocumentError
from importer.exports.base import Refused
from importer.exports.localai_gallery import Entry, entry
from importer.messages import render

State = Literal["draft", "approved", "validated", "published", "rejected", "stale"]
STATES: tuple[State, ...] = get_args(State)


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
    held = validation(receipt, stored.data, stored.digest)
    said = f"{receipt.review.get('by')}, {receipt.review.get('at')}"
    if review == "rejected":
        return Standing("rejected", review, held.state, f"rejected by {said}: {receipt.review.get('note')}")
    if review == "draft":
        return Standing("draft", review, held.state, "nobody has approved it as it is now")
    if review == "stale":
        return Standing("stale", review, held.state, f"it was edited since it was approved by {said}")
    if held.state == "passed":
        return _published(stored, review)
    why = "it was never validated" if held.why is None else render(held.why)
    if held.state == "stale":
        return Standing("stale", review, held.state, f"its validation does not hold: {why}")
    return Standing("approved", review, held.state, why)


def _published(stored: Stored, review: str) -> Standing:
    try:
        made = entry(stored.data, stored.receipt)
    except DocumentError as error:
        return Standing("validated", review, "passed", error.message)
    if isinstance(made, Refused):
        return Standing("validated", review, "passed", f"LocalAI cannot be given it: {render(made.reason)}")
    return Standing("published", review, "passed", None, made)
