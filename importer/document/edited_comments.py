"""Comments of a document after an edit: whether a value is of the import or of a person."""

from __future__ import annotations

from collections.abc import Mapping

from importer.document.attention import AttentionReason
from importer.document.document_keys import place, same
from importer.document.effective import value_at
from importer.document.merge import head, write
from importer.document.store import StoredDocument
from importer.document.yaml_edit.patch import rewrite
from importer.document.yaml_edit.source_map import read
from importer.errors import DocumentError
from importer.sentences import worded


def patched(before: StoredDocument, data: Mapping[str, object]) -> str:
    """Return the document's text with other data; comments of importer that no longer hold are renewed.

    Raises DocumentError("cannot-edit").
    """
    return _headed(before, _renewed(before, before.text, data), data)


def renewed(before: StoredDocument, text: str) -> str:
    """Return a person's new text of the document; comments of importer that no longer hold are renewed.

    A text that cannot be changed without a loss stays as the person wrote it.
    """
    data = read(text, before.path.name)
    try:
        return _headed(before, _renewed(before, text, data), data)
    except DocumentError:
        return text


def _renewed(before: StoredDocument, text: str, data: Mapping[str, object]) -> str:
    """Return a text with these data, as a merge with the last import writes it."""
    base = None if before.receipt is None or before.receipt.wrote is None else before.receipt.base
    if base is None:
        return rewrite(text, data, path=before.path.name)
    return write(text, data, base, base, before.path.name)


def _headed(before: StoredDocument, text: str, data: Mapping[str, object]) -> str:
    """Return the text with the lines ``attention: …`` of those warnings whose key no person has changed."""
    receipt = before.receipt
    if receipt is None or receipt.wrote is None or not receipt.warnings:
        return text
    lines = {_line(warning): _is_edited(str(warning.get("key")), receipt.wrote, data)
             for warning in receipt.warnings if warning.get("kind") in set(AttentionReason)}  # fmt: skip
    top = head(text)
    kept = "".join(line for line in top.splitlines(keepends=True) if not lines.get(line.rstrip("\r\n")))
    return kept + text.removeprefix(top)


def _line(warning: Mapping[str, object]) -> str:
    kind = AttentionReason(str(warning["kind"]))
    return f"# attention: {worded(kind.short, {'key': warning.get('key')})}"


def _is_edited(key: str, wrote: Mapping[str, object], data: Mapping[str, object]) -> bool:
    at = place(key)
    return at is not None and not same(value_at(wrote, at), value_at(data, at))
