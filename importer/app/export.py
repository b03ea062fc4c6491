"""Export a document for another consumer."""

from __future__ import annotations

from importer.config_file.store import StoredDocument
from importer.errors import DocumentError
from importer.exports import get
from importer.exports.base import Device, Exported, ExportRefused, Options, Origin


def export(
    stored: StoredDocument, format_name: str, *, device: Device | None = None, approved_only: bool = False
) -> tuple[Exported, Origin]:
    """Return the files of an export and where they come from; writes nothing.

    ``device``  the kind of machine that the files are for, by default the one that was fitted to.
    Raises UsageError("unknown-format"), and DocumentError: "invalid" for a document that does not hold to its
    schema or names no engine, "not-approved" with ``approved_only``, "cannot-export" with reason and remedy.
    """
    chosen = get(format_name)
    stored.check()
    if not stored.data["backend"]:
        raise DocumentError("invalid", path=stored.path, problem="backend: it is empty; an export is for one")
    origin = Origin.of(stored.data, stored.receipt)
    if approved_only and origin.review != "approved":
        raise DocumentError("not-approved", name=origin.name, review=origin.review)
    made = chosen.export(stored.data, stored.receipt, Options(device, stored.chat_template()))
    if isinstance(made, ExportRefused):
        raise DocumentError(
            "cannot-export", name=origin.name, format=format_name, reason=made.reason, remedy=made.remedy
        )
    return made, origin
