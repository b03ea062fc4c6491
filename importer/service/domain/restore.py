"""Earlier versions of a working copy, and deleted documents, that are brought back."""

from __future__ import annotations

from dataclasses import replace

from importer.config_file.receipt import Receipt
from importer.config_file.store import receipt_path, write_all
from importer.config_file.template_file import place as template_path
from importer.errors import DocumentError, ServiceError
from importer.service.domain.document_text import checked
from importer.service.domain.edits import admit_edit
from importer.service.domain.gallery import Change, DocumentVersion
from importer.service.domain.grants import Caller
from importer.service.settings import Settings
from importer.storage import documents
from importer.storage.documents import Summary


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
    pending = {"state": "pending", "by": None, "at": None, "digest": None}
    if present is None:
        return replace(receipt, review=pending)
    last = next((word for word in reversed(present.history) if word.get("digest") == digest), None)
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
