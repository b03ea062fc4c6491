"""Approvals of this user on this machine, for documents that grant an engine more than the free settings.

A receipt may come from others together with its document, so a run here needs a record outside of both:
an empty file per approved content, below ``IMPORTER_HOME``.
"""

from __future__ import annotations

from collections.abc import Collection

from importer.document.grants import Grant, runs
from importer.document.store import StoredDocument, approval_record
from importer.errors import DocumentError


def remember(stored: StoredDocument) -> None:
    """Record the approval of a document that grants something; forget it where the review is another."""
    record = approval_record(stored.digest)
    if not runs(stored.data):
        return
    if stored.receipt is not None and stored.receipt.state(stored.digest) == "approved":
        record.parent.mkdir(parents=True, exist_ok=True)
        record.touch()
    else:
        record.unlink(missing_ok=True)


def held(stored: StoredDocument) -> list[Grant]:
    """Return the grants of a document that this user has approved on this machine."""
    return runs(stored.data) if stored.approved else []


def missing(stored: StoredDocument, typed: Collection[Grant] = ()) -> list[Grant]:
    """Return the grants of a document that are neither approved here nor ``typed`` just now."""
    return [] if stored.approved else [grant for grant in runs(stored.data) if grant not in typed]


def need(stored: StoredDocument, typed: Collection[Grant] = ()) -> None:
    """Raise DocumentError("needs-approval") for a grant neither approved here nor ``typed`` just now."""
    if granted := missing(stored, typed):
        raise DocumentError("needs-approval", name=stored.name, what=granted[0].reason)
