"""Approvals of this user on this machine, for documents that grant an engine more than the free settings.

A receipt may come from others together with its document, so a run here needs a record outside of both:
an empty file per approved content, below ``IMPORTER_HOME``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from importer.document.document import Document
from importer.document.grants import Grant, runs
from importer.document.store import StoredDocument, approval_record
from importer.errors import DocumentError


@contextmanager
def recorded(data: Document, digest: str, *, approved: bool) -> Iterator[None]:
    """Record the approval of data that grant something, or forget it, before a receipt with that review is
    written in the block; undo it where the block fails. Raises DocumentError("cannot-write").
    """
    if not runs(data):
        yield
        return
    record = approval_record(digest)
    before = os.path.exists(record)  # noqa: PTH110 - never raises
    _set(record, approved)
    try:
        yield
    except BaseException:
        _set(record, before)
        raise


def _set(record: Path, approved: bool) -> None:
    try:
        if approved:
            record.parent.mkdir(parents=True, exist_ok=True)
            record.touch()
        else:
            record.unlink(missing_ok=True)
    except OSError as error:
        raise DocumentError("cannot-write", path=record, problem=error.strerror or error) from None


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
