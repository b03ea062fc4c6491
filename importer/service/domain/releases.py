"""What the gallery serves of a document: release, roll-back, withdrawal; restores of versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from importer.document.receipt import Receipt
from importer.document.records import ReviewRecord
from importer.document.store import StoredDocument, receipt_path, write_all
from importer.document.template_file import place as template_path
from importer.errors import DocumentError, ServiceError
from importer.reasons import Reason
from importer.service.domain.document_text import checked
from importer.service.domain.gallery import Change, DocumentVersion, check_version
from importer.service.domain.grants import Caller, admit_edit
from importer.service.settings import Settings
from importer.storage import audit, documents, releases
from importer.storage.document_rows import Summary
from importer.storage.releases import Served


def ready(change: Change, name: str) -> bool:
    """Return whether the working copy in the checkout can be released and is not served already."""
    served = releases.served(change.connection, name)
    state = publication_state(change.checkout.load(name), None if served is None else served.digest)
    return state.state == "ready"


def release(change: Change, name: str, number: int | None = None, *, unvalidated: bool = False) -> Summary:
    """Serve the working copy in the checkout, or an earlier version, and return the document's row.

    ``unvalidated``  an approver's decision to do without a validation; the audit log has it. It holds for
    the roll-back to a version that was served. Raises DocumentError: "no-such-document", "invalid", and
    ServiceError: "no-such-version", "not-ready-to-release".
    """
    stored, connection = change.checkout.load(name), change.connection
    served, newest = releases.served(connection, name), change.checkout.fetched[name].number + 1
    chosen, policy, left = stored, RELEASE, None
    if number is not None and number != newest - 1:
        chosen, policy, left = _earlier(change, name, number, stored, served)
    elif served is not None and served.digest == stored.digest:
        policy = SERVED
    chosen.check()  # of another importer's approval a key may be unknown here
    reason = next(publishable(chosen, UNVALIDATED if unvalidated else policy), None)
    made = reason or entry_of(chosen)
    if isinstance(made, Reason):
        state = publication_state(chosen, None if served is None else served.digest).state
        what = name if number is None else _named(name, number)
        raise ServiceError("not-ready-to-release", name=what, state=state, why=made)
    same = policy is SERVED and releases.shows(connection, name, made)  # a validation since changes an entry
    if served is not None and (served.version == number or same):
        return change.save(name)
    who, at = change.context.who, now()
    pointer = Served(number if chosen is not stored and number else newest, chosen.digest, who, at, left)
    releases.serve(connection, name, pointer, made)
    if left is not None:
        change.context = replace(change.context, action="roll back")
    _record(change, "release" if left is None else "roll back", name, pointer, unvalidated=unvalidated)
    return change.save(name, always=True)


def _named(name: str, number: int) -> str:
    return f"version {number} of {name}"


def _earlier(
    change: Change, name: str, number: int, present: StoredDocument, served: Served | None
) -> tuple[StoredDocument, frozenset[PublicationReason], int | None]:
    """Return an earlier version, the policy for it, and the version that it takes the place of.

    Raises ServiceError: "no-such-version", "not-ready-to-release" for data that were rejected since, or
    whose last validation failed.
    """
    row = documents.version(change.connection, name, number)
    if row is None:
        raise ServiceError("no-such-version", name=name, number=number)
    last = None if present.receipt is None else present.receipt.last_review(row.digest)
    if last is not None and last["state"] == "rejected":
        why = Reason(PublicationReason.REJECTED, **{key: last.get(key) for key in ("by", "at", "note")})
        raise ServiceError("not-ready-to-release", name=_named(name, number), state="rejected", why=why)
    failed = (one for one in publishable(present) if one.kind is PublicationReason.FAILED)
    if row.digest == present.digest and (reason := next(failed, None)) is not None:  # a later run
        raise ServiceError("not-ready-to-release", name=_named(name, number), state="approved", why=reason)
    was_served = row.state == "published"
    left = None if served is None else max(served.version, served.left or 0)
    back = left if left is not None and left > number else None
    return DocumentVersion.of(row).stored, UNVALIDATED if was_served else RELEASE, back


def withdraw(change: Change, name: str) -> Summary:
    """Take a document's entry out of the gallery, and return the document's row.

    Raises DocumentError("no-such-document").
    """
    change.checkout.load(name)
    served = releases.served(change.connection, name)
    if served is not None:
        releases.remove(change.connection, name)
        _record(change, "withdraw", name, served)
    return change.save(name, always=served is not None)


def _record(change: Change, action: str, name: str, one: Served, **details: bool) -> None:
    """Add the entry of the audit log: the version that follows has one of its own."""
    context = replace(change.context, action=action)
    told = {"release": one.version, "digest": one.digest, **details}
    audit.record(change.connection, context, name, told)


def restore(
    change: Change, name: str, number: int, who: Caller, settings: Settings, seen: Sequence[int] | None
) -> Summary:
    """Write an earlier version into the working copy, and return its row; the review begins anew.

    Its evidence and its validations come with it. A rejection of the same data stays. A deleted document
    comes back, which needs the scope ``approve``; its last version comes back as it was. Raises
    DocumentError: "no-such-document", "invalid" where a later schema refuses it; ServiceError:
    "no-such-version", "precondition-failed", "wrong-scope", "needs-approver", and what an import of its
    references raises.
    """
    last = documents.last_number(change.connection, name)
    if not last:
        raise DocumentError("no-such-document", name=name, folder="the gallery")
    check_version(name, last, seen)
    there = change.checkout.find(name)
    if there is None:
        who.needs("approve")
    row = documents.version(change.connection, name, number)
    if row is None:
        raise ServiceError("no-such-version", name=name, number=number)
    present = there or DocumentVersion.of(documents.newest(change.connection, name)).stored
    version = DocumentVersion.of(row)
    data = checked(version.text, name, version.stored.facts)
    admit_edit(present.data, data, who, settings)
    if number == last and there is None:
        _put(change, version, version.stored.receipt)
    elif there is None or version.digest != present.digest or version.text != present.text:
        receipt = version.stored.receipt or present.receipt
        _put(
            change, version, None if receipt is None else _reviewed(receipt, present.receipt, version.digest)
        )
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
