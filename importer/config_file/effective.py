"""The effective value of each key of a document: what is there now, who set it, and what else was offered.

Comments of a document after an edit: the comment at a value names who set it, the import or a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from importer.config_file import build, document_keys
from importer.config_file.attention import AttentionReason
from importer.config_file.document import DecisionRecord, Document
from importer.config_file.document_keys import (
    ABSENT,
    FACTS,
    OPTIONS,
    REMARKS,
    UNWRITTEN,
    KeyPath,
    differences,
    dotted,
    keyed,
    same,
    shown,
)
from importer.config_file.merge import BOOKKEEPING, DERIVED, head, labelled, remarks
from importer.config_file.receipt import Receipt
from importer.config_file.store import StoredDocument
from importer.config_file.yaml_edit.patch import rewrite
from importer.config_file.yaml_edit.source_map import read
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.sentences import worded
from importer.signals.evidence import Rule

EDITED = "edited"  # the status of a value that a person wrote over the import's
Offerer = Literal["vendor", "table", "engine-default"]
OFFERERS: tuple[Offerer, ...] = ("vendor", "table", "engine-default")
ENGINE = "engine_default"


@frozen
class Editor:
    """The person who gave a value its present form, and when (UTC)."""

    by: str
    at: str


# Returns who gave the value at a path its present form, where a history is kept.
Editors = Callable[[KeyPath], Editor | None]


@frozen
class EffectiveValue:
    """One key.

    ``value``     in the document now, ``ABSENT`` where it has none; ``imported`` is the import's.
    ``status``    of the decision, or ``edited``; ``source`` is the text of the value's comment.
    ``offers``    value and source of vendor, table and engine, as far as the evidence has them.
    ``served``    in the release that is served, ``ABSENT`` where that has none.
    """

    key: str
    value: Any
    status: str
    source: str
    imported: Any
    offers: Mapping[str, Mapping[str, object]]
    editor: Editor | None = None
    served: Any = ABSENT

    def to_json(self) -> dict[str, object]:
        """Return the members; an absent value is left out, for null is a value."""
        values = {"value": self.value, "imported": self.imported, "served": self.served}
        editor = {} if self.editor is None else {"by": self.editor.by, "at": self.editor.at}
        return {
            "key": self.key,
            **{name: value for name, value in values.items() if value is not ABSENT},
            "status": self.status, "source": self.source, **editor, **self.offers,
        }  # fmt: skip


def effective(
    stored: StoredDocument,
    served: Mapping[str, object] | None = None,
    editors: Editors | None = None,
    defaults: Mapping[str, Mapping[str, object]] | None = None,
) -> list[EffectiveValue]:
    """Return the decisions of a document in their order, then other keys that a person changed.

    ``served`` are the data of the release that is served; ``defaults`` value and source of the engine's own
    values by key, where the evidence has none. Raises DocumentError("no-receipt").
    """
    receipt = stored.need_receipt()
    wrote, found, covered = receipt.wrote, list[EffectiveValue](), set[KeyPath]()
    for key, decision in receipt.decisions.items():
        path = place(key)
        if path is None:
            continue
        covered.add(path)
        imported = ABSENT if wrote is None else value_at(wrote, path)
        if wrote is None:
            imported = ABSENT if decision.get("value") is None else decision["value"]
        found.append(_value(key, path, stored.data, imported, decision, receipt, served, editors))
    for change in () if wrote is None else differences(wrote, stored.data):
        path = change.path
        above = any(path[: len(known)] == known or known[: len(path)] == path for known in covered)
        if not above and path not in DERIVED and path[0] not in BOOKKEEPING:
            found.append(
                _value(dotted(path), path, stored.data, change.before, None, receipt, served, editors)
            )
    return [_with_default(one, (defaults or {}).get(one.key)) for one in found]


def _with_default(one: EffectiveValue, default: Mapping[str, object] | None) -> EffectiveValue:
    if default is None or ENGINE in one.offers:
        return one
    return replace(one, offers={**one.offers, ENGINE: default})


def place(key: str) -> KeyPath | None:
    """Return the path of a decision's value in a document; ``None`` for one that only the receipt has."""
    if key in REMARKS:
        return None
    if key in OPTIONS:
        return (document_keys.KEY, key)
    return ("importer", key) if key in FACTS else tuple(key.split("."))


def value_at(data: Mapping[str, object], path: KeyPath) -> Any:
    """Return the value at a path as ``differences`` names it; ``ABSENT`` where there is none."""
    if path[0] == document_keys.KEY and len(path) == 2:
        named = document_keys.parser(data, str(path[1]))
        return ABSENT if named is None else named
    inner: Any = data
    for at, step in enumerate(path):
        inner = inner if isinstance(inner, Mapping) else keyed(path[:at], inner)
        if not isinstance(inner, Mapping) or step not in inner:
            return ABSENT
        inner = inner[step]
    return inner


def _value(
    key: str, path: KeyPath, data: Document, imported: Any, decision: DecisionRecord | None,
    receipt: Receipt, served: Mapping[str, object] | None, editors: Editors | None,
) -> EffectiveValue:  # fmt: skip
    value = value_at(data, path)
    if value is imported is ABSENT and key in UNWRITTEN and decision is not None:
        value = imported = decision.get("value")  # what the engine does by itself
    edited = not same(value, imported)
    editor = editors(path) if edited and editors is not None else None
    status = EDITED if edited or decision is None else str(decision.get("status"))
    if edited:
        source = build.edited(None) if editor is None else build.edited_by(editor.by, editor.at)
    else:
        source = next(iter((decision or {}).get("why") or ()), status)
    return EffectiveValue(
        key, value, status, source, imported, dict(_offers(receipt, key)), editor,
        ABSENT if served is None else value_at(served, path),
    )  # fmt: skip


def _offers(receipt: Receipt, key: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield value and source of the strongest evidence of vendor, table and engine."""
    ranked = sorted(
        (Rule(e["rule"]).rank, at) for at, e in enumerate(receipt.evidence)
        if e["key"] == key and e["rule"] in set(Rule)
    )  # fmt: skip
    for offerer in OFFERERS:
        for _, at in ranked:
            one = receipt.evidence[at]
            if Rule(one["rule"]).status == offerer:
                yield offerer.replace("-", "_"), {"value": one["value"], "source": one["source"]}
                break


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
        self._merged_remarks = {} if receipt is None else receipt.remarked
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
        known = (self._base_remarks.get(at), self._merged_remarks.get(at))
        return comment in known or build.is_edit(comment)

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
