"""The state of a working copy between draft and published: computed from its receipt and the release that is
served, never set by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from importer.app.states import State
from importer.config_file.store import StoredDocument
from importer.config_file.validation_status import validation
from importer.errors import DocumentError
from importer.exports.base import ExportRefused, Origin
from importer.exports.localai_gallery import GalleryEntry, entry
from importer.reasons import Reason, ReasonKind


class PublicationReason(ReasonKind):
    """Why a working copy is not what the gallery serves."""

    NO_RECEIPT = "no-receipt", "it has no receipt"
    REJECTED = "rejected", "rejected by {by}, {at:moment}: {note}"
    NOT_APPROVED = "not-approved", "nobody has approved it as it is now"
    EDITED = "edited", "it was edited since it was approved by {by}, {at:moment}"
    OUTDATED = "outdated", "its validation does not hold: {why}"
    NEVER_VALIDATED = "never-validated", "it was never validated"
    FAILED = "failed", "{why}"
    NO_COMMIT = "no-commit", "it names no commit of its model, so its files could change"
    NO_ENTRY = "no-entry", "{problem}"
    NOT_FOR_LOCALAI = "not-for-localai", "LocalAI cannot be given it: {problem}"
    NOT_RELEASED = "not-released", "it is ready to be released"


@dataclass(frozen=True, slots=True)
class PublicationState:
    """``state``; ``review`` and ``validation`` of the receipt; ``reason``: why it is not published.

    ``entry`` is what LocalAI is shown of a document that is published, or ready to be released.
    """

    state: State
    review: str
    validation: str
    reason: Reason | None = None
    entry: GalleryEntry | None = None


def publication_state(stored: StoredDocument, served: str | None = None) -> PublicationState:
    """Return the state: ready while approved, validated, pinned and exportable to LocalAI.

    ``served`` is the digest of the release that is served: a ready document with that digest is published.
    """
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
        return _ready(stored, review, served)
    if held.state == "stale":
        return PublicationState("stale", review, held.state, Reason(PublicationReason.OUTDATED, why=held.why))
    if held.why is None:
        return PublicationState("approved", review, held.state, Reason(PublicationReason.NEVER_VALIDATED))
    return PublicationState("approved", review, held.state, Reason(PublicationReason.FAILED, why=held.why))


def _ready(stored: StoredDocument, review: str, served: str | None) -> PublicationState:
    made = entry_of(stored)
    if isinstance(made, Reason):
        return PublicationState("validated", review, "passed", made)
    if stored.digest == served:
        return PublicationState("published", review, "passed", None, made)
    return PublicationState("ready", review, "passed", Reason(PublicationReason.NOT_RELEASED), made)


def entry_of(stored: StoredDocument) -> GalleryEntry | Reason:
    """Return what LocalAI would be shown of a document, or why there is no such entry."""
    try:
        made = entry(stored.data, stored.receipt)
    except DocumentError as error:
        return Reason(PublicationReason.NO_ENTRY, problem=error.message)
    if isinstance(made, ExportRefused):
        return Reason(PublicationReason.NOT_FOR_LOCALAI, problem=made.reason)
    if Origin.of(stored.data, stored.receipt).revision is None:  # of this very model
        return Reason(PublicationReason.NO_COMMIT)
    return made
