"""Where a document stands between draft and published: worked out from its receipt, never set by hand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, get_args

from importer.config_file.store import StoredDocument
from importer.config_file.validation_status import validation
from importer.errors import DocumentError
from importer.exports.base import ExportRefused
from importer.exports.localai_gallery import GalleryEntry, entry
from importer.reasons import Reason

State = Literal["draft", "approved", "validated", "published", "rejected", "stale"]
STATES: tuple[State, ...] = get_args(State)


class StandingReason(StrEnum):
    """Why a document is not published."""

    NO_RECEIPT = "no-receipt"
    REJECTED = "rejected"
    NOT_APPROVED = "not-approved"
    EDITED = "edited"
    OUTDATED = "outdated"
    NEVER_VALIDATED = "never-validated"
    FAILED = "failed"
    NO_ENTRY = "no-entry"
    NOT_FOR_LOCALAI = "not-for-localai"


@dataclass(frozen=True, slots=True)
class Standing:
    """``state``; ``review`` and ``validation`` as receipts tell them; why it is not published.

    ``entry`` is what LocalAI is shown, where it is published.
    """

    state: State
    review: str
    validation: str
    reason: Reason | None = None
    entry: GalleryEntry | None = None


def standing(stored: StoredDocument) -> Standing:
    """A document is published while it is approved, its validation holds, and LocalAI can be given it."""
    receipt = stored.receipt
    if receipt is None:
        return Standing("draft", "no receipt", "never", Reason(StandingReason.NO_RECEIPT))
    review = receipt.state(stored.digest)
    held = validation(receipt, stored.data, stored.digest)
    word = {name: receipt.review.get(name) for name in ("by", "at", "note")}
    if review == "rejected":
        return Standing("rejected", review, held.state, Reason(StandingReason.REJECTED, **word))
    if review == "draft":
        return Standing("draft", review, held.state, Reason(StandingReason.NOT_APPROVED))
    if review == "stale":
        return Standing("stale", review, held.state, Reason(StandingReason.EDITED, **word))
    if held.state == "passed":
        return _published(stored, review)
    if held.state == "stale":
        return Standing("stale", review, held.state, Reason(StandingReason.OUTDATED, why=held.why))
    if held.why is None:
        return Standing("approved", review, held.state, Reason(StandingReason.NEVER_VALIDATED))
    return Standing("approved", review, held.state, Reason(StandingReason.FAILED, why=held.why))


def _published(stored: StoredDocument, review: str) -> Standing:
    try:
        made = entry(stored.data, stored.receipt)
    except DocumentError as error:
        no = Reason(StandingReason.NO_ENTRY, problem=error.message)
        return Standing("validated", review, "passed", no)
    if isinstance(made, ExportRefused):
        no = Reason(StandingReason.NOT_FOR_LOCALAI, problem=made.reason)
        return Standing("validated", review, "passed", no)
    return Standing("published", review, "passed", None, made)
