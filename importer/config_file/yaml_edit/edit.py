"""Change the data of a YAML text that a person wrote, and nothing else.

Comments, order, quoting, blank lines, line ends, anchors and indentation stay outside of the values that
change. Every result is read again: it holds exactly the target data and every comment, or the edit is
refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from importer.config_file.diff import KeyPath, same
from importer.config_file.yaml_edit.cst import Layout, Node, is_block, steps
from importer.config_file.yaml_edit.patch import Cuts, EditReason, EditRefused, Patch
from importer.config_file.yaml_edit.render import printable
from importer.config_file.yaml_edit.source_map import read
from importer.errors import DocumentError
from importer.reasons import Reason
from importer.yaml_reader import YamlError

Notes = Mapping[KeyPath, str | None]


def rewrite(text: str, target: Mapping[str, Any], notes: Notes | None = None, path: object = "It") -> str:
    """Return ``text`` with the data ``target``; raises DocumentError("cannot-edit") where that is not safe.

    ``notes`` are comments on the lines of their paths: they replace the present ones, and ``None`` removes
    one. All other comments stay; a comment whose value is removed gets a line of its own. New keys stand
    behind the key that they follow in ``target``.
    """
    notes = notes or {}
    have = read(text, path)
    try:
        layout = Layout(text)
        remarks = layout.remarks()
        own = {remarks[p].start for p in notes if p in remarks}
        done = text if same(have, target) else Patch(layout, own).operate(have, target)
        done = _annotated(done, notes)
        _check(layout, own, done, target)
    except EditRefused as refused:
        raise DocumentError("cannot-edit", path=path, problem=refused.reason) from None
    except RecursionError:
        raise DocumentError("cannot-edit", path=path, problem=Reason(EditReason.TOO_DEEP)) from None
    return done


def _check(before: Layout, own: set[int], after: str, target: Mapping[str, Any]) -> None:
    try:
        data = read(after, "the result")
    except DocumentError as error:
        raise EditRefused(EditReason.BROKEN_BY, problem=error.details["problem"]) from None
    if not same(data, target):
        raise EditRefused(EditReason.OTHER_VALUES)
    comments = Counter(c.text for c in before.comments if c.start not in own)
    comments.subtract(c.text for c in Layout(after).comments)
    if any(count > 0 for count in comments.values()):
        raise EditRefused(EditReason.COMMENT_LOST)


def _annotated(text: str, notes: Notes) -> str:
    """Return the text with the notes on their lines; one whose value does not end a line is left out."""
    try:
        layout = Layout(text)
    except YamlError:
        raise EditRefused(EditReason.BROKEN) from None
    cuts = Cuts(text)
    for path, slot in _places(layout, (), layout.root):
        if path not in notes:
            continue
        note, old, at = notes[path], layout.remark(slot), layout.remark_place(slot)
        if old is not None and note is not None:
            cuts.replace(old.start, old.end, f"# {printable(note)}")
        elif old is not None:
            cuts.replace(layout.behind_words(at, old.start), old.end, "")
        elif note is not None and not text[at : layout.line_end(at)].strip():
            cuts.replace(layout.line_end(at), layout.line_end(at), f"  # {printable(note)}")
    return cuts.applied()


def _places(layout: Layout, path: KeyPath, node: yaml.Node) -> Iterator[tuple[KeyPath, Node]]:
    """Yield every value in block style that a note can be written on."""
    if not is_block(node):
        return
    slots = layout.slots(node)
    for slot, step in zip(slots, steps(path, node, slots), strict=True):
        yield (*path, *step), slot
        yield from _places(layout, (*path, *step), slot.node)
