"""A document in one row, for every front end alike: state, facts, and what needs a person's attention.

Whether a document may be published, by one function for releases, galleries and pages; its state between
draft and published follows from that and from the release that is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from importer.app import approvals
from importer.app.parser_choice import check_named
from importer.app.states import INVALID, State
from importer.document.document_keys import OPTIONS
from importer.document.effective import refutation
from importer.document.entry_facts import EntryFacts, entry_facts
from importer.document.receipt import Receipt
from importer.document.review import row, warnings
from importer.document.store import Invalid, Store, StoredDocument, load
from importer.document.validation_state import validation
from importer.errors import DocumentError, UsageError
from importer.exports.base import Origin
from importer.exports.localai_gallery import GalleryEntry, entry
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.sentences import render


class PublicationReason(ReasonKind):
    """Why a working copy is not what the gallery serves."""

    INVALID = "{problem}"
    NO_RECEIPT = "it has no receipt"
    REJECTED = "rejected by {by}, {at:moment}: {note}"
    NOT_APPROVED = "not approved yet"
    NOT_HERE = "approved by {by}, {at:moment}, but not on this machine: {what}"
    EDITED = "it was edited since it was approved by {by}, {at:moment}"
    OUTDATED = "its validation does not hold: {why}"
    NEVER_VALIDATED = "it was never validated"
    FAILED = "{why}"
    REFUTED = "{why}"
    NO_COMMIT = "it names no commit of its model, so its files could change"
    NO_ENTRY = "{problem}"
    NOT_FOR_LOCALAI = "LocalAI cannot be given it: {problem}"
    NOT_RELEASED = "it is ready to be released"


@frozen
class PublicationState:
    """``state``; ``review`` and ``validation`` of the receipt; ``reason``: why it is not published.

    ``entry`` is what LocalAI is shown of a document that is published, or ready to be released.
    """

    state: State | Invalid
    review: str
    validation: str
    reason: Reason | None = None
    entry: GalleryEntry | None = None


# Policies: the reasons that do not keep a document from being published.
RELEASE: frozenset[PublicationReason] = frozenset()
# Without a validation that holds, by an approver.
UNVALIDATED = frozenset({
    PublicationReason.NEVER_VALIDATED, PublicationReason.OUTDATED, PublicationReason.REFUTED,
})  # fmt: skip
SERVED = UNVALIDATED - {PublicationReason.OUTDATED}  # the release was that decision
# A gallery of files says of an entry that it was never validated; one without an entry has a page alone.
FILES = frozenset({
    PublicationReason.NEVER_VALIDATED, PublicationReason.NO_ENTRY, PublicationReason.NOT_FOR_LOCALAI,
})  # fmt: skip
DRAFT = FILES | {
    PublicationReason.NO_RECEIPT, PublicationReason.NOT_APPROVED, PublicationReason.NOT_HERE,
    PublicationReason.EDITED, PublicationReason.OUTDATED,
}  # fmt: skip
STATE_OF: Mapping[ReasonKind, State | Invalid] = {
    PublicationReason.INVALID: INVALID,
    PublicationReason.NO_RECEIPT: "draft", PublicationReason.REJECTED: "rejected",
    PublicationReason.NOT_APPROVED: "draft", PublicationReason.NOT_HERE: "draft",
    PublicationReason.EDITED: "stale",
    PublicationReason.OUTDATED: "stale", PublicationReason.NEVER_VALIDATED: "approved",
    PublicationReason.FAILED: "approved", PublicationReason.REFUTED: "approved",
    PublicationReason.NO_COMMIT: "validated",
    PublicationReason.NO_ENTRY: "validated", PublicationReason.NOT_FOR_LOCALAI: "validated",
}  # fmt: skip


def publishable(stored: StoredDocument, policy: frozenset[PublicationReason] = RELEASE) -> Iterator[Reason]:
    """Yield what keeps a document from being published, the first of its life first; nothing where it may be.

    ``policy`` has the reasons that do not count.
    """
    return (reason for reason in _against(stored) if reason.kind not in policy)


def _against(stored: StoredDocument) -> Iterator[Reason]:
    receipt, fault = stored.receipt, stored.fault
    if fault is not None:
        yield Reason(PublicationReason.INVALID, problem=fault.message)
        return
    if receipt is None:
        yield Reason(PublicationReason.NO_RECEIPT)
    else:
        yield from _of_review(stored, receipt)
        held = validation(receipt, stored.data, stored.digest)
        for key in OPTIONS if held.state != "passed" else ():  # what was observed outranks what was proved
            if (why := refutation(stored.data, receipt, key)) is not None:
                yield Reason(PublicationReason.REFUTED, key=key, why=why)
        if held.state == "never":
            yield Reason(PublicationReason.NEVER_VALIDATED)
        elif held.state != "passed":
            kind = PublicationReason.OUTDATED if held.state == "stale" else PublicationReason.FAILED
            yield Reason(kind, why=held.why)
    made = entry_of(stored)
    if isinstance(made, Reason):
        yield made


def _of_review(stored: StoredDocument, receipt: Receipt) -> Iterator[Reason]:
    by, review = {name: receipt.review.get(name) for name in ("by", "at", "note")}, stored.review
    if review == "rejected":
        yield Reason(PublicationReason.REJECTED, **by)
    elif review == "draft" and receipt.state(stored.digest) == "approved":
        yield Reason(PublicationReason.NOT_HERE, **by, what=approvals.missing(stored)[0].reason)
    elif review == "draft":
        yield Reason(PublicationReason.NOT_APPROVED)
    elif review == "stale":
        yield Reason(PublicationReason.EDITED, **by)


def publication_state(stored: StoredDocument, served: str | None = None) -> PublicationState:
    """Return the state: ready while nothing keeps the document from being released.

    ``served`` is the digest of the release that is served: a ready document with that digest is published.
    """
    receipt, is_served = stored.receipt, stored.digest == served
    held = "never" if receipt is None else validation(receipt, stored.data, stored.digest).state
    reason = next(publishable(stored, SERVED if is_served else RELEASE), None)
    if reason is not None:
        return PublicationState(STATE_OF[reason.kind], stored.review, held, reason)
    found = entry_of(stored)
    made = None if isinstance(found, Reason) else found
    if is_served:
        return PublicationState("published", stored.review, held, None, made)
    return PublicationState("ready", stored.review, held, Reason(PublicationReason.NOT_RELEASED), made)


def entry_of(stored: StoredDocument) -> GalleryEntry | Reason:
    """Return what LocalAI would be shown of a document, or why there is no such entry."""
    try:
        if stored.fault is not None:
            raise stored.fault
        check_named(stored.data)
        made: GalleryEntry | Reason = entry(stored.data, stored.receipt)
    except (DocumentError, UsageError) as error:
        if error.kind != "cannot-export":
            return Reason(PublicationReason.NO_ENTRY, problem=error.message)
        made = Reason(PublicationReason.NOT_FOR_LOCALAI, problem=error.details["reason"])
    pinned = Origin.of(stored.data, stored.receipt).revision is not None  # of this very model
    return made if pinned else Reason(PublicationReason.NO_COMMIT)


# A validation that does not count is trouble in every state.
LOST = {"failed": PublicationReason.FAILED, "stale": PublicationReason.OUTDATED}
STATE_KEY = "state"  # the key of what needs attention by the state itself
# Reasons of a state that a person has to act on; the others wait for their turn.
TROUBLES = (
    PublicationReason.INVALID, PublicationReason.NO_RECEIPT, PublicationReason.NOT_HERE,
    PublicationReason.EDITED, PublicationReason.OUTDATED, PublicationReason.FAILED,
    PublicationReason.REFUTED, PublicationReason.NO_ENTRY,
)  # fmt: skip


@frozen
class Overview:
    """``state`` with its reason, the facts, and what needs attention: kind, key, reason, message of each."""

    state: PublicationState
    facts: EntryFacts
    needs_attention: tuple[Mapping[str, object], ...]

    def to_json(self) -> dict[str, object]:
        """Return the members that a row of a list adds to name, model and backend."""
        reason = self.state.reason
        return {
            "state": self.state.state,
            "reason": None if reason is None else render(reason),
            "needs_attention": [dict(one) for one in self.needs_attention],
            "facts": self.facts.to_json(),
        }


def overview(stored: StoredDocument, served: str | None = None) -> Overview:
    """Return the overview of a document; ``served`` is the digest of the release that a gallery serves."""
    state = publication_state(stored, served)
    return Overview(state, entry_facts(stored.data, stored.receipt), needs_attention(stored, state))


def needs_attention(stored: StoredDocument, state: PublicationState) -> tuple[Mapping[str, object], ...]:
    """Return what a person has to look at, the state itself first; none for a document that only waits.

    An approval or a rejection settles the warnings of the import; an invalid document is mended first.
    """
    return (
        *_of_state(stored, state),
        *(() if state.review in ("approved", "rejected", INVALID) else warnings(stored)),
    )


def _of_state(stored: StoredDocument, state: PublicationState) -> Iterator[Mapping[str, object]]:
    """Yield the trouble of a state, and that of a validation which the state does not show."""
    reason = state.reason
    shown = [] if reason is None or reason.kind not in TROUBLES else [reason]
    lost = LOST.get(state.validation)
    if not shown and lost is not None and stored.receipt is not None:
        shown.append(Reason(lost, why=validation(stored.receipt, stored.data, stored.digest).why))
    for one in shown:
        yield {"kind": str(one.kind), "key": STATE_KEY, "reason": one.to_json(), "message": render(one)}


def rows(store: Store) -> list[dict[str, object]]:
    """Return a row for each document of a folder by name, those that cannot be read included."""
    return [row_of(store, name) for name in store.names()]


def row_of(store: Store, name: str) -> dict[str, object]:
    """Return the row of a document; one that is not valid, or cannot be read, has what is known of it."""
    try:
        stored = load(store.path(name), details=False)
    except DocumentError as error:
        unread = dict.fromkeys(("model", "revision", "backend", "facts"))
        trouble = {"kind": INVALID, "key": STATE_KEY, "reason": {}, "message": error.message}
        states = {"review": INVALID, "validation": "never", "state": INVALID, "reason": error.message}
        return {"name": name, **unread, **states, "needs_attention": [trouble]}
    return {**row(stored), **overview(stored).to_json()}
