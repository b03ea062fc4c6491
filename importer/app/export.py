"""Export a document for another consumer."""

from __future__ import annotations

from importer.app import approvals
from importer.app.parser_choice import check_named
from importer.document.store import StoredDocument
from importer.document.template_file import ChatTemplate
from importer.errors import DocumentError
from importer.exports import get
from importer.exports.base import Device, Exported, Options, Origin


def export(
    stored: StoredDocument, format_name: str, *, device: Device | None = None, approved_only: bool = False
) -> tuple[Exported, Origin]:
    """Return the files of an export and where they come from; writes nothing.

    ``device``  the kind of machine that the files are for, by default the one that was fitted to.
    Raises UsageError("unknown-format"), and DocumentError: "invalid" for a document that does not hold to its
    schema or names no engine, and what ``export_valid`` raises.
    """
    get(format_name)
    stored.check()
    if not stored.data["backend"]:
        raise DocumentError("invalid", path=stored.path, problem="backend is required for an export")
    template = stored.chat_template()
    return export_valid(stored, template, format_name, device=device, approved_only=approved_only)


def export_valid(
    stored: StoredDocument,
    template: ChatTemplate | None,
    format_name: str,
    *,
    device: Device | None = None,
    approved_only: bool = False,
) -> tuple[Exported, Origin]:
    """Return the export of a document that was checked before; ``template`` is the one that it names.

    Raises UsageError: "unknown-format", "unknown-parser"; DocumentError: "not-approved" with
    ``approved_only``, "needs-approval" for a document that grants something, "cannot-export" with reason and
    remedy, "no-receipt" for a damaged one.
    """
    consumer = get(format_name)
    origin = Origin.of(stored.data, stored.receipt)
    stored.check_receipt()
    if approved_only and not stored.approved:
        raise DocumentError("not-approved", name=origin.name, review=stored.review)
    approvals.need(stored)
    check_named(stored.data)
    return consumer.export(stored.data, stored.receipt, Options(device, template)), origin
