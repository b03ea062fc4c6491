"""The patch of a YAML text: one walk through text, data and target data that cuts only what has to change.

Values as YAML text, in the style of the text that they are written into.

Change the data of a YAML text that a person wrote, and nothing else.

Comments, order, quoting, blank lines, line ends, anchors and indentation stay outside of the values that
change. Every result is read again: it holds exactly the target data and every comment, or the edit is
refused.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import yaml

from importer.document.document_keys import KeyPath, same
from importer.document.yaml_edit.cst import (
    BREAKS,
    MERGE,
    Alias,
    Layout,
    Node,
    aligned,
    is_block,
    labels,
    steps,
)
from importer.document.yaml_edit.render import YamlStyle, _OneLine, _text, block, inline
from importer.document.yaml_edit.source_map import read
from importer.errors import DocumentError
from importer.reasons import Reason, ReasonKind
from importer.sentences import printable
from importer.yaml_reader import YamlError

_OneLine.add_representer(str, _text)


class EditReason(ReasonKind):
    """Why an edit cannot be made."""

    MEET = "two changes meet in one place"
    NOTHING_LEFT = "nothing of it would stay"
    EMPTY_DASH = "a list or map that begins on the line of its dash would be empty"
    BROKEN = "the result would be broken"
    BROKEN_BY = "the result would be broken, {problem}"
    OTHER_VALUES = "the result would not hold the wanted values"
    COMMENT_LOST = "a comment would be lost"
    TOO_DEEP = "it is nested too deep"


class EditRefused(Exception):
    """An edit that cannot be made."""

    def __init__(self, kind: EditReason, **fields: object) -> None:
        self.reason = Reason(kind, **fields)
        super().__init__(kind)


class Cuts:
    """Replacements in a text, none of which may overlap."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._cuts: list[tuple[int, int, str]] = []

    def replace(self, start: int, end: int, by: str) -> None:
        """Note a replacement; of several at one place the first stays first."""
        if start < end or by:
            self._cuts.append((start, end, by))

    def applied(self) -> str:
        """Return the text with all of them; raises EditRefused where two overlap."""
        done, reached = [], 0
        for start, end, by in sorted(self._cuts, key=lambda c: c[:2]):
            if start < reached:
                raise EditRefused(EditReason.MEET)
            done += [self._text[reached:start], by]
            reached = end
        return "".join([*done, self._text[reached:]])


class Patch:
    """``own``: where the importer's comments begin, which are removed with their lines; all others stay."""

    def __init__(self, layout: Layout, own: set[int]) -> None:
        self._layout = layout
        self._text = layout.text
        self._own = own
        self._cuts = Cuts(layout.text)
        self._style = _style(layout)
        self._fates: dict[int, tuple[Any, Any]] = {}
        self._closed = False

    def operate(self, have: Any, want: Any) -> str:
        """Return the new text; raises EditRefused. The caller checks that it holds ``want``."""
        root = self._layout.root
        if not want or not (is_block(root) or _alike((), root, have, want)):
            raise EditRefused(EditReason.NOTHING_LEFT)
        self._foresee(root, have, want, ())
        self._map(root, have, want, ())
        return self._cuts.applied()

    def _foresee(self, node: yaml.Node, have: Any, want: Any, path: KeyPath) -> None:
        """Note the change of every node, so that an alias finds the change of its anchor."""
        self._fates[id(node)] = have, want
        if not _alike(path, node, have, want):
            return
        slots = self._layout.slots(node)
        if isinstance(node, yaml.MappingNode):
            own = {str(s.step): s.node for s in slots if not _merges(s)}
            pairs: list[tuple[yaml.Node, Any, Any, KeyPath]]
            pairs = [(n, have[k], want[k], (k,)) for k, n in own.items() if k in want]
        else:
            names = labels(path, have)
            pairs = [
                (slots[i].node, have[i], want[j], names[i])
                for i, j in aligned(path, have, want)
                if i is not None and j is not None
            ]
        for inner, one, other, step in pairs:
            if not isinstance(inner, Alias):
                self._foresee(inner, one, other, (*path, *step))

    def _value(self, slot: Node, have: Any, want: Any, path: KeyPath, *, flow: bool) -> None:
        """Change a value. ``flow``: whether it stands inside of brackets."""
        node = slot.node
        if isinstance(node, Alias):
            fate = self._fates.get(id(node.value))
            if fate is None or not same(fate[1], want):
                self._replace(slot, want, flow=flow)
        elif not _alike(path, node, have, want):
            if not same(have, want):
                self._replace(slot, want, flow=flow)
        elif isinstance(node, yaml.MappingNode):
            self._map(node, have, want, path)
        else:
            self._list(node, have, want, path)

    def _map(self, node: yaml.Node, have: dict[str, object], want: dict[str, object], path: KeyPath) -> None:
        slots = self._layout.slots(node)
        merged = [s for s in slots if _merges(s)]
        own = {str(s.step): s for s in slots if not _merges(s)}
        borrowed = have.keys() - own.keys()
        expands = bool(merged) and (not borrowed <= want.keys() or self._changes(merged, want))
        for key, slot in own.items():
            if key in want:
                self._value(slot, have[key], want[key], (*path, key), flow=not is_block(node))
        stay = [s for s in slots if (not expands if _merges(s) else s.step in want)]
        known = own.keys() if expands else own.keys() | {k for k in borrowed if same(have[k], want[k])}
        before = stay[-1] if stay else None
        for key, value in want.items():
            if key in own:
                before = own[key]
            elif key not in known:
                self._add(node, slots, before, {key: value})
        self._remove(node, slots, stay)

    def _changes(self, merged: list[Node], want: dict[str, object]) -> bool:
        """Return whether what ``<<`` names changes or holds a key too many; then its keys are written out."""
        values = [s.node for s in merged]
        named = [n for v in values for n in (v.value if isinstance(v, yaml.SequenceNode) else [v])]
        fates = [self._fates.get(id(n.value)) for n in named if isinstance(n, Alias)]
        return any(fate is None or not same(*fate) or not fate[0].keys() <= want.keys() for fate in fates)

    def _list(self, node: yaml.Node, have: list[Any], want: list[Any], path: KeyPath) -> None:
        slots, names = self._layout.slots(node), labels(path, have)
        stay: list[Node] = []
        for i, j in aligned(path, have, want):
            if i is not None and j is not None:
                self._value(slots[i], have[i], want[j], (*path, *names[i]), flow=not is_block(node))
                stay.append(slots[i])
            elif j is not None:
                self._add(node, slots, stay[-1] if stay else None, [want[j]])
        self._remove(node, slots, stay)

    # Additions

    def _add(self, node: yaml.Node, slots: list[Node], before: Node | None, entry: Any) -> None:
        """Add an entry behind ``before``; without it at the end of a map, at the front of a list."""
        front = before is None and isinstance(node, yaml.SequenceNode)
        quote = _quote((before or slots[0]).node) if isinstance(entry, list) else None
        if not is_block(node):
            addition = (
                inline(entry, flow=True)[1:-1] if quote is None else inline(entry[0], flow=True, quote=quote)
            )
            at = slots[0].start if front else (before or slots[-1]).node.end_mark.index
            self._cuts.replace(at, at, f"{addition}, " if front else f", {addition}")
            return
        column = self._layout.column(slots[0].start)
        lines = _indented(block(entry, self._style), column)
        if quote is not None and isinstance(entry[0], str):
            lines = [f"{' ' * column}- {inline(entry[0], quote=quote)}"]
        if not front:
            self._put_lines(self._below(before or slots[-1]), lines)
        elif self._layout.begins_line(slots[0].start):
            self._put_lines(self._layout.line_start(slots[0].start), lines)
        else:
            addition = self._layout.newline.join([*lines, " " * column])
            self._cuts.replace(slots[0].start, slots[0].start, addition.lstrip(" "))

    def _below(self, slot: Node) -> int:
        """Return the line behind an entry, and behind comments that are indented into it."""
        at = self._layout.next_line(self._layout.content_end(slot.node))
        while is_block(slot.node):
            line = self._text[at : self._layout.line_end(at)]
            words = line.lstrip(" ")
            if not words.startswith("#") or len(line) - len(words) <= self._layout.column(slot.start):
                break
            at = self._layout.next_line(at)
        return at

    def _put_lines(self, at: int, lines: list[str]) -> None:
        if not lines:
            return
        newline = self._layout.newline
        unended = at == len(self._text) and not self._text.endswith(tuple(BREAKS))
        text = newline.join(lines)
        self._cuts.replace(at, at, newline + text if unended else text + newline)
        if unended and not self._closed:
            self._closed = True
            self._close_text()

    def _close_text(self) -> None:
        """Mark a block scalar at the end of a file without a line break, so that its value gets none."""
        node = self._layout.root
        while slots := self._layout.slots(node):
            node = slots[-1].node
        sign = self._layout.sign(node)
        if sign is not None and self._text[sign - 1] not in "+-":
            self._cuts.replace(sign, sign, "-")

    # Removals

    def _remove(self, node: yaml.Node, slots: list[Node], stay: list[Node]) -> None:
        if not is_block(node):
            self._remove_inline(node, slots, stay)
            return
        first, stays = 0, set(stay)
        if not self._layout.begins_line(slots[0].start):
            first = len(list(takewhile(lambda s: s not in stays, slots)))
            self._remove_behind_dash(slots, first)
        for slot in slots[first:]:
            if slot not in stays:
                start = self._layout.line_start(slot.start)
                end = self._layout.next_line(self._layout.content_end(slot.node))
                self._cuts.replace(start, end, self._comments_of(start, end, self._layout.column(slot.start)))

    def _remove_behind_dash(self, slots: list[Node], count: int) -> None:
        """Remove entries on the line of their dash: the first that stays takes their place."""
        if count == len(slots):
            raise EditRefused(EditReason.EMPTY_DASH)
        start, stays = slots[0].start, slots[count].start
        if count:
            line = self._layout.line_start(stays)
            comments = self._comments_of(start, line, self._layout.column(start))
            self._cuts.replace(start, line if comments else stays, comments.lstrip(" "))

    def _remove_inline(self, node: yaml.Node, slots: list[Node], stay: list[Node]) -> None:
        """Remove each entry with the comma behind it; at the end, the comma before."""
        stays = set(stay)
        limits = [*(s.start for s in slots[1:]), node.end_mark.index]
        ends = [max(s.node.end_mark.index, s.behind) for s in slots]
        commas = [self._layout.comma(end, limit) for end, limit in zip(ends, limits, strict=True)]
        for slot, end, comma in zip(slots, ends, commas, strict=True):
            last = commas[-1] is None and slots[-1] not in stays and slot is stay[-1]
            if slot not in stays:
                self._cuts.replace(slot.start, end, "")
                self._rescue(slot.start, end, self._layout.column(slot.start))
            if comma is not None and (last or slot not in stays):
                self._cuts.replace(comma, self._layout.behind_spaces(comma + 1), "")

    def _comments_of(self, start: int, end: int, column: int) -> str:
        """Return a person's comments in a stretch that goes, each on a line of its own."""
        lines = []
        for comment in self._layout.comments_in(start, end):
            if comment.start not in self._own:
                line = self._layout.line_start(comment.start)
                alone = line >= start and self._layout.begins_line(comment.start)
                lead = self._text[line : comment.start] if alone else " " * column
                lines.append(lead + comment.text + self._layout.newline)
        return "".join(lines)

    def _rescue(self, start: int, end: int, column: int) -> None:
        """Put a person's comments in a stretch that goes below it."""
        comments = self._comments_of(start, end, column)
        self._put_lines(self._layout.next_line(end), comments.split(self._layout.newline)[:-1])

    # Replacements

    def _replace(self, slot: Node, want: Any, *, flow: bool) -> None:
        if is_block(slot.node):
            self._replace_block(slot, want)
            return
        node, layout = slot.node, self._layout
        start, end = layout.value_start(node), layout.content_end(node)
        self._untag(node, start)
        nested = _holds(want) and not flow and slot.key is not None and not _flows(node)
        text = "" if nested else inline(want, flow=flow, quote=_quote(node))
        header = layout.remark(slot)
        if layout.sign(node) is not None:
            text += f"  {header.text}" if header is not None else ""
        else:
            self._rescue(start, end, layout.column(slot.start))
        if not nested:
            self._cuts.replace(start, end, self._spaced(slot, start, text))
            return
        bare = start == node.start_mark.index and not text
        self._cuts.replace(slot.behind if bare else start, end, text)
        self._put_lines(layout.next_line(end), self._nested(slot, want))

    def _replace_block(self, slot: Node, want: Any) -> None:
        """Replace a block by one line or by another block."""
        layout = self._layout
        begin, end = layout.slots(slot.node)[0].start, layout.content_end(slot.node)
        column = layout.column(slot.start) + self._style.step
        self._untag(slot.node, layout.value_start(slot.node))
        if not layout.begins_line(begin):
            self._cuts.replace(begin, end, inline(want))
            self._rescue(begin, end, column)
            return
        top, bottom = layout.next_line(slot.behind), layout.next_line(end)
        lines_below = self._comments_of(top, bottom, column)
        if _holds(want) and slot.key is not None:
            lines_below += layout.newline.join([*self._nested(slot, want), ""])
        else:
            behind = layout.remark_place(slot)
            self._cuts.replace(behind, behind, f" {inline(want)}")
        self._cuts.replace(top, bottom, lines_below)

    def _nested(self, slot: Node, want: Any) -> list[str]:
        """Return the lines below the key."""
        return _indented(block({"k": want}, self._style), self._layout.column(slot.start))[1:]

    def _untag(self, node: yaml.Node, end: int) -> None:
        """Remove the tag of the old value; an anchor stays, since aliases may name it."""
        properties = self._text[node.start_mark.index : end]
        if "!" in properties and not isinstance(node, Alias):
            anchors = [f"{word} " for word in properties.split() if word.startswith("&")]
            self._cuts.replace(node.start_mark.index, end, "".join(anchors))

    def _spaced(self, slot: Node, start: int, text: str) -> str:
        """Return the text with a space before it, and a colon where a bare key had none."""
        if slot.key is not None and slot.behind == slot.key.end_mark.index:
            return f": {text}"
        return text if self._text[start - 1] in " \t[{," + BREAKS else f" {text}"


def _indented(text: str, column: int) -> list[str]:
    return [" " * column + line if line else line for line in text.split("\n")[:-1]]


def _style(layout: Layout) -> YamlStyle:
    """Return the indentation of the first nested map and of the first list under a key."""
    step = dashes = None
    waiting = deque([layout.root])
    while waiting and (step is None or dashes is None):
        for slot in layout.slots(waiting.popleft()):
            if slot.key is None or not is_block(slot.node):
                continue
            deeper = layout.column(layout.slots(slot.node)[0].start) - layout.column(slot.start)
            if isinstance(slot.node, yaml.MappingNode):
                step = step or deeper
            elif dashes is None:
                dashes = deeper
            waiting.append(slot.node)
    return YamlStyle(step if step is not None and 2 <= step <= 9 else 2, bool(dashes))


def _alike(path: KeyPath, node: yaml.Node, have: Any, want: Any) -> bool:
    """Return whether a value changes entry by entry: something in it stays."""
    if isinstance(node, yaml.MappingNode) and isinstance(want, Mapping):
        return bool(have.keys() & want.keys())
    if isinstance(node, yaml.SequenceNode) and isinstance(want, list):
        return any(None not in pair for pair in aligned(path, have, want))
    return False


def _merges(slot: Node) -> bool:
    return slot.key is not None and slot.key.tag == MERGE


def _holds(value: Any) -> bool:
    """Return whether it is a map or a list with something in it."""
    return isinstance(value, Mapping | list) and bool(value)


def _flows(node: yaml.Node) -> bool:
    """Return whether it is a map or a list in brackets with something in it."""
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style) and bool(node.value)


def _quote(node: yaml.Node) -> str | None:
    """Return the sign that a text is quoted with."""
    return node.style if isinstance(node, yaml.ScalarNode) and node.style in ("'", '"') else None


Notes = Mapping[KeyPath, str | None]


def rewrite(text: str, target: Mapping[str, object], notes: Notes | None = None, path: object = "It") -> str:
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


def _check(before: Layout, own: set[int], after: str, target: Mapping[str, object]) -> None:
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
