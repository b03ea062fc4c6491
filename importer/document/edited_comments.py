"""Comments of a document after an edit: the comment at a value names who set it, the import or a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.document import build
from importer.document.attention import AttentionReason
from importer.document.document_keys import (
    ABSENT,
    KeyPath,
    place,
    same,
    shown,
)
from importer.document.effective import Editor, value_at
from importer.document.merge import head, labelled, remarks
from importer.document.store import StoredDocument
from importer.document.yaml_edit.patch import rewrite
from importer.document.yaml_edit.source_map import read
from importer.errors import DocumentError
from importer.sentences import worded

Notes = dict[KeyPath, str | None]


def patched(before: StoredDocument, data: Mapping[str, object], editor: Editor) -> str:
    """Return the document's text with other data; comments of importer that no longer hold are renewed.

    A value that the edit adds has a comment, too. Raises DocumentError("cannot-edit").
    """
    notes = _Comments(before, data, editor).notes(before.text, added=True)
    return _headed(before, rewrite(before.text, data, notes, before.path.name), data)


def renewed(before: StoredDocument, text: str, editor: Editor) -> str:
    """Return a person's new text of the document; comments of importer that no longer hold are renewed.

    A text that cannot be changed without a loss stays as the person wrote it.
    """
    data = read(text, before.path.name)
    try:
        notes = _Comments(before, data, editor).notes(text, added=False)
        return _headed(before, rewrite(text, data, notes, before.path.name) if notes else text, data)
    except DocumentError:
        return text


class _Comments:
    """The values of a document in the last import, before the edit and after it, by their places."""

    def __init__(self, before: StoredDocument, data: Mapping[str, object], editor: Editor) -> None:
        receipt = before.receipt
        base = None if receipt is None else receipt.base
        self._editor = editor
        self._base_remarks = {} if base is None else remarks(base)
        self._imported = {} if receipt is None else dict(labelled(receipt.wrote or {}))
        self._old, self._new = dict(labelled(before.data)), dict(labelled(data))

    def notes(self, text: str, *, added: bool) -> Notes:
        """Return the comments to change in a text, ``None`` for those to remove."""
        present = remarks(text)
        wanted: Notes = {at: self._wanted(at, had) for at, had in present.items() if self._is_ours(at, had)}
        if added:
            wanted |= {at: self._at_value(at) for at in self._added() if at not in present}
        return {at: note for at, note in wanted.items() if note != present.get(at)}

    def _is_ours(self, at: KeyPath, comment: str) -> bool:
        return comment == self._base_remarks.get(at) or build.is_edit(comment)

    def _wanted(self, at: KeyPath, comment: str) -> str | None:
        if at not in self._new:
            return None
        kept = same(self._value(self._new, at), self._value(self._old, at)) and build.is_edit(comment)
        return comment if kept and not self._is_imported(at) else self._at_value(at)

    def _at_value(self, at: KeyPath) -> str | None:
        """Return the import's comment where its value stands, else one with the person's name."""
        if self._is_imported(at):
            return self._base_remarks.get(at)
        imported = self._value(self._imported, at)
        text = None if imported is ABSENT else shown(imported)
        return build.edited_by(self._editor.by, self._editor.at, text)

    def _is_imported(self, at: KeyPath) -> bool:
        return same(self._value(self._new, at), self._value(self._imported, at))

    def _value(self, values: Mapping[KeyPath, Any], at: KeyPath) -> Any:
        """Return the value at a place; of an entry in a list the list, whose comment stands at its first."""
        above = values.get(at[:-1])
        whole = isinstance(above, list) and isinstance(at[-1], int)
        return above if whole else values.get(at, ABSENT)

    def _added(self) -> Iterator[KeyPath]:
        """Yield the places of single values that the edit adds."""
        for at, value in self._new.items():
            if at and at not in self._old and not isinstance(value, (dict, list)):
                yield at


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
