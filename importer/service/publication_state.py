"""The state of a document between draft and published: computed from its receipt, never set by hand."""

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


class PublicationReason(StrEnum):
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
class PublicationState:
    """``state``; ``review`` and ``validation`` of the receipt; ``reason``: why it is not published.

    ``entry`` is what LocalAI is shown of a published document.
    """

    state: State
    review: str
    validation: str
    reason: Reason | None = None
    entry: GalleryEntry | None = None


def publication_state(stored: StoredDocument) -> PublicationState:
    """Return the state: published while approved, validated, and exportable to LocalAI."""
    receipt = stored.receipt
    if receipt is None:
        return PublicationState("draft", "no receipt", "never", Reason(PublicationReason.NO_RECEIPT))
    review = receipt.state(stored.digest)
    held = validation(receipt, stored.data, stored.digest)
    by = {name: receipt.review.get(name) for name in ("by", "at", "note")}
    if review == "rejected":
        return PublicationState("rejected", review, held.state, Reason(PublicationReason.REJECTED, **by))
    if review == "draft":
        return PublicationState("draft", review, held.state, Reason(PublicationReason.NOT_APPROVED))
    if review == "stale":
        return PublicationState("stale", review, held.state, Reason(PublicationReason.EDITED, **by))
    if held.state == "passed":
        return _published(stored, review)
    if held.state == "stale":
        return PublicationState("stale", review, held.state, Reason(PublicationReason.OUTDATED, why=held.why))
    if held.why is None:
        return PublicationState("approved", review, held.state, Reason(PublicationReason.NEVER_VALIDATED))
    return PublicationState("approved", review, held.state, Reason(PublicationReason.FAILED, why=held.why))


def _published(stored: StoredDocument, review: str) -> PublicationState:
    try:
        made = entry(stored.data, stored.receipt)
    except DocumentError as error:
        no = Reason(PublicationReason.NO_ENTRY, problem=error.message)
        return PublicationState("validated", review, "passed", no)
    if isinstance(made, ExportRefused):
        no = Reason(PublicationReason.NOT_FOR_LOCALAI, problem=made.reason)
        return PublicationState("validated", review, "passed", no)
    return PublicationState("published", review, "passed", None, made)
