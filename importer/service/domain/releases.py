"""Releases: the working copy that is promoted, the one that is served, roll-backs, restores."""

from __future__ import annotations

import json
from dataclasses import replace

from sqlalchemy import Connection

from importer.app.overview import (
    RELEASE,
    SERVED,
    UNVALIDATED,
    PublicationReason,
    entry_of,
    publication_state,
    publishable,
)  # fmt: skip
from importer.config import now
from importer.config_file.document import ReviewRecord
from importer.config_file.receipt import Receipt
from importer.config_file.store import receipt_path, write_all
from importer.config_file.template_file import place as template_path
from importer.errors import DocumentError, ServiceError
from importer.exports.base import loss_json
from importer.exports.localai_gallery import GalleryEntry
from importer.reasons import Reason
from importer.service.domain.document_text import checked
from importer.service.domain.gallery import Change, DocumentVersion
from importer.service.domain.grants import Caller, admit_edit
from importer.service.settings import Settings
from importer.storage import audit, documents, releases
from importer.storage.document_rows import Summary
from importer.storage.releases import Release, ReleaseEntry


def ready(change: Change, name: str) -> bool:
    """Return whether the working copy in the checkout can be released and is not served already."""
    served = releases.served(change.connection, name)
    state = publication_state(change.checkout.load(name), None if served is None else served.digest)
    return state.state == "ready"


def promote(
    change: Change, name: str, note: str | None, *, unvalidated: bool = False
) -> tuple[Summary, Release, bool]:
    """Release the working copy in the checkout and serve it.

    Return its row, its release, and whether that is new: one with the same digest that is served stays.
    ``unvalidated``  an approver's decision to do without a validation; the audit log has it.
    Raises DocumentError: "no-such-document", "invalid", and ServiceError("not-ready-to-release").
    """
    stored, connection = change.checkout.load(name), change.connection
    stored.check()  # of another importer's approval a key may be unknown here
    served = releases.served(connection, name)
    is_served = served is not None and served.digest == stored.digest
    policy = UNVALIDATED if unvalidated else SERVED if is_served else RELEASE
    reason = next(publishable(stored, policy), None)
    made = reason or entry_of(stored)
    if isinstance(made, Reason):
        state = publication_state(stored, None if served is None else served.digest).state
        raise ServiceError("not-ready-to-release", name=name, state=state, why=made)
    if is_served and served is not None:
        return change.save(name), served, False
    files, at, context = change.checkout.now(name), now(), change.context
    release = Release(
        name=name, number=releases.next_number(connection, name), version=change.next_version(name),
        digest=stored.digest, text=str(files.text), data=json.dumps(stored.data, ensure_ascii=False),
        receipt_hash=documents.put_receipt(connection, str(files.receipt)), template=files.template,
        entry=_entry(made), by=context.who, at=at, why=note,
    )  # fmt: skip
    releases.add(connection, release)
    _record(change, "release", release, unvalidated=unvalidated)
    return change.save(name, always=True), release, True


def roll_back(change: Change, name: str, number: int) -> tuple[Summary, Release]:
    """Serve an earlier release again; return the document's row and the release.

    Raises DocumentError("no-such-document") and ServiceError: "no-such-release", "withdrawn",
    "not-ready-to-release" for data that were rejected since.
    """
    stored = change.checkout.load(name)
    release, served = need(change.connection, name, number), releases.served(change.connection, name)
    if release.withdrawn_at is not None:
        raise ServiceError("withdrawn", name=name, number=number)
    receipt = stored.receipt
    last = None if receipt is None else receipt.last_review(release.digest)
    if last is not None and last["state"] == "rejected":
        why = Reason(PublicationReason.REJECTED, **{key: last.get(key) for key in ("by", "at", "note")})
        raise ServiceError("not-ready-to-release", name=name, state="rejected", why=why)
    if served is not None and served.number == number:
        return change.save(name), release
    releases.serve(change.connection, release, now())
    _record(change, "roll back", release)
    return change.save(name, always=True), release


def withdraw(change: Change, name: str, number: int, note: str | None) -> tuple[Summary, Release]:
    """Withdraw a release for good; the gallery has no entry of the document where it was served.

    Raises DocumentError("no-such-document") and ServiceError: "no-such-release", "withdrawn".
    """
    change.checkout.load(name)
    release = need(change.connection, name, number)
    if release.withdrawn_at is not None:
        raise ServiceError("withdrawn", name=name, number=number)
    at, who = now(), change.context.who
    was_served = releases.withdraw(change.connection, name, [number], who, at, note)
    _record(change, "withdraw", release)
    summary = change.save(name, always=was_served)
    return summary, replace(release, withdrawn_by=who, withdrawn_at=at, withdrawn_why=note)


def need(connection: Connection, name: str, number: int) -> Release:
    """Return a release; raises ServiceError("no-such-release")."""
    release = releases.get(connection, name, number)
    if release is None:
        raise ServiceError("no-such-release", name=name, number=number)
    return release


def need_history(connection: Connection, name: str) -> None:
    """Raise DocumentError("no-such-document") for a name that no document ever had."""
    if not documents.last_number(connection, name):
        raise DocumentError("no-such-document", name=name, folder="the gallery")


def _entry(made: GalleryEntry) -> ReleaseEntry:
    return ReleaseEntry(made.item, made.file, dict(made.about), [loss_json(loss) for loss in made.lost])


def _record(change: Change, action: str, release: Release, **details: bool) -> None:
    """Add the entry of the audit log: the version that follows has one of its own."""
    context = replace(change.context, action=action)
    audit.record(
        change.connection, context, release.name,
        {"release": release.number, "digest": release.digest, **details},
    )  # fmt: skip


def restore(change: Change, name: str, number: int, who: Caller, settings: Settings) -> Summary:
    """Write an earlier version into the working copy, and return its row; the review begins anew.

    Its evidence and its validations come with it. A rejection of the same data stays. Raises
    DocumentError: "no-such-document", "invalid" where a later schema refuses it; ServiceError:
    "no-such-version", "needs-approver", and what an import of its references raises.
    """
    present = change.checkout.load(name)
    row = documents.version(change.connection, name, number)
    if row is None:
        raise ServiceError("no-such-version", name=name, number=number)
    version = DocumentVersion.of(row)
    data = checked(version.text, name, version.stored.facts)
    admit_edit(present.data, data, who, settings)
    if version.digest != present.digest or version.text != present.text:
        receipt = version.stored.receipt or present.receipt
        _put(
            change, version, None if receipt is None else _reviewed(receipt, present.receipt, version.digest)
        )
    return change.save(name)


def undelete(change: Change, name: str) -> Summary:
    """Bring a deleted document back as it was, and return its row; its releases stay withdrawn.

    Raises DocumentError("no-such-document") for a name that no document ever had, and
    ServiceError("not-deleted").
    """
    if not documents.last_number(change.connection, name):
        raise DocumentError("no-such-document", name=name, folder="the gallery")
    if change.checkout.find(name) is not None:
        raise ServiceError("not-deleted", name=name)
    version = DocumentVersion.of(documents.newest(change.connection, name))
    _put(change, version, version.stored.receipt)
    return change.save(name)


def _reviewed(receipt: Receipt, present: Receipt | None, digest: str) -> Receipt:
    """Return the version's receipt with all reviews, and the last one only where that rejected these data."""
    pending: ReviewRecord = {"state": "pending", "by": None, "at": None, "digest": None}
    if present is None:
        return replace(receipt, review=pending)
    last = present.last_review(digest)
    review = last if last is not None and last["state"] == "rejected" else pending
    return replace(receipt, review=review, history=present.history, approved=present.approved)


def _put(change: Change, version: DocumentVersion, receipt: Receipt | None) -> None:
    path = change.checkout.path(version.name)
    texts = {path: version.text}
    if receipt is not None:
        texts[receipt_path(path)] = receipt.to_text()
    template = template_path(path)
    if version.template is not None:
        texts[template] = version.template
    else:
        template.unlink(missing_ok=True)
    write_all(texts)
