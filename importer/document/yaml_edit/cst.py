"""The places of all parts of a YAML text: values, the signs between them, and comments, by PyYAML's marks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import takewhile, zip_longest
from typing import Any

import yaml

from importer.document import document_keys
from importer.document.document_keys import KeyPath, canonical, keyed
from importer.frozen import frozen
from importer.reasons import Reason
from importer.yaml_reader import YamlError, YamlReason, compose, error_of

BREAKS = "\r\n\x85\u2028\u2029"  # what ends a line to YAML
BREAK = re.compile(f"\r\n|[{BREAKS}]")
SPACES = re.compile(" *")
COMMENT = re.compile(f"#[^{BREAKS}]*")
PROPERTIES = re.compile(r"(?:(&[\w-]+|![^\s,\[\]{}]*)[ \t]*)*")
LEADING = re.compile(r"(?:[ \t]+[&!]\S*)*")  # the same, behind a colon or a dash
SIGN = re.compile(r"[|>][-+0-9]*")
MERGE = "tag:yaml.org,2002:merge"


class Alias(yaml.Node):
    """``*name`` where it stands; ``value`` is the node it means."""

    id = "alias"


class _Composer(yaml.SafeLoader):
    """Composes as PyYAML does, but an alias keeps its own place."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event() if self.check_event(yaml.AliasEvent) else None  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        return (
            node if event is None or node is None else Alias(node.tag, node, event.start_mark, event.end_mark)
        )


def _composed(text: str) -> yaml.Node:
    loader = _Composer(text)
    try:
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        raise error_of(error) from None
    finally:
        loader.dispose()
    if root is None:
        raise YamlError(Reason(YamlReason.EMPTY))
    return root


@frozen
class Comment:
    """From its ``#`` to the end of its line."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """Return the offset behind its last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A place for a value: behind a key's colon, or behind a list's dash or comma.

    ``start``   where the entry begins: its key, ``?`` or dash; in a flow list the value itself.
    ``behind``  the end of the colon or the dash; of the key or at the value where there is none.
    ``step``    the entry's step in a path.
    """

    step: str | int
    start: int
    behind: int
    node: yaml.Node
    key: yaml.Node | None = None


class Layout:
    """A text that is valid YAML, and the places in it. Offsets count characters from 0."""

    def __init__(self, text: str) -> None:
        """Raise YamlError for a text that is not read."""
        compose(text)  # bounds what follows, whose marks libyaml would count otherwise
        self.text = text
        self.root = _composed(text)
        self._dashes: list[int] = []
        self._colons: list[int] = []
        self._commas: list[int] = []
        self._questions: list[int] = []
        self.comments: list[Comment] = []
        self._slots: dict[int, list[Node]] = {}  # by node; the root keeps every node alive
        self._ends: dict[int, int] = {}
        self._breaks = [m.start() for m in re.finditer(f"[{BREAKS}]", text)]
        self._scan()

    def _scan(self) -> None:
        """Find the signs in the tokens, and the comments in the gaps between them."""
        signs = {
            yaml.BlockEntryToken: self._dashes,
            yaml.ValueToken: self._colons,
            yaml.FlowEntryToken: self._commas,
            yaml.KeyToken: self._questions,
        }
        reached = 0
        for token in yaml.scan(self.text, Loader=yaml.SafeLoader):
            start, end = token.start_mark.index, token.end_mark.index
            if end <= start:
                continue
            self._find_comments(reached, start)
            if type(token) in signs:
                signs[type(token)].append(start)
            if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
                self._find_comments(start, self.line_end(start))
            reached = end
        self._find_comments(reached, len(self.text))

    def _find_comments(self, start: int, end: int) -> None:
        self.comments += [Comment(m.start(), m.group()) for m in COMMENT.finditer(self.text, start, end)]

    # Lines

    @cached_property
    def newline(self) -> str:
        """Return the text's own kind of line break."""
        match = BREAK.search(self.text)
        return match.group() if match and match.group() in ("\r\n", "\r") else "\n"

    def line_start(self, offset: int) -> int:
        """Return where the line begins; behind a byte order mark."""
        before = bisect_left(self._breaks, offset)
        start = self._breaks[before - 1] + 1 if before else 0
        return start + 1 if self.text.startswith("\ufeff", start) else start

    def line_end(self, offset: int) -> int:
        """Return the line's break, or the end of the text."""
        behind = bisect_left(self._breaks, offset)
        return self._breaks[behind] if behind < len(self._breaks) else len(self.text)

    def next_line(self, offset: int) -> int:
        """Return the offset behind the line's break."""
        match = BREAK.match(self.text, self.line_end(offset))
        return match.end() if match else len(self.text)

    def column(self, offset: int) -> int:
        """Return the number of characters before it on its line."""
        return offset - self.line_start(offset)

    def begins_line(self, offset: int) -> bool:
        """Return whether only spaces stand before it on its line."""
        match = SPACES.match(self.text, self.line_start(offset))
        return match is not None and match.end() >= offset

    def behind_words(self, start: int, end: int) -> int:
        """Return the offset behind the last character before ``end`` that is no white space, at least
        ``start``.
        """
        return start + len(self.text[start:end].rstrip(" \t"))

    def behind_spaces(self, at: int) -> int:
        """Return the offset behind spaces; those before a comment or a line's end stay."""
        end = at
        while self.text[end : end + 1] == " ":
            end += 1
        return at if self.text[end : end + 1] in ("#", "", *BREAKS) else end

    def comments_in(self, start: int, end: int) -> list[Comment]:
        """Return the comments that begin in a stretch of the text."""
        first, last = (bisect_left(self.comments, at, key=lambda c: c.start) for at in (start, end))
        return self.comments[first:last]

    # Nodes

    def slots(self, node: yaml.Node) -> list[Node]:
        """Return the entries of a map or a list, in their order; ``<<`` among them; none of a scalar or an
        alias.
        """
        if (known := self._slots.get(id(node))) is not None:
            return known
        reached, entries = node.start_mark.index, list[Node]()
        for index, entry in enumerate(node.value if isinstance(node, yaml.CollectionNode) else ()):
            pair = isinstance(node, yaml.MappingNode)
            entries.append(self._pair(entry, reached) if pair else self._item(entry, index, node))
            reached = entries[-1].node.end_mark.index
        self._slots[id(node)] = entries
        return entries

    def _pair(self, entry: tuple[yaml.Node, yaml.Node], reached: int) -> Node:
        key, value = entry
        name = key.value.value if isinstance(key, Alias) else key.value
        question = self._last(self._questions, reached, key.start_mark.index)
        colon = self._first(self._colons, key.end_mark.index, value.start_mark.index)
        start = key.start_mark.index if question is None else question
        return Node(name, start, key.end_mark.index if colon is None else colon + 1, value, key)

    def _item(self, value: yaml.Node, index: int, node: yaml.Node) -> Node:
        start = value.start_mark.index
        dash = self._last(self._dashes, node.start_mark.index, start - 1) if is_block(node) else None
        return Node(index, start, start, value) if dash is None else Node(index, dash, dash + 1, value)

    @staticmethod
    def _last(signs: list[int], start: int, end: int) -> int | None:
        at = bisect_left(signs, end + 1) - 1
        return signs[at] if at >= 0 and signs[at] >= start else None

    @staticmethod
    def _first(signs: list[int], start: int, end: int) -> int | None:
        at = bisect_left(signs, start)
        return signs[at] if at < len(signs) and signs[at] < end else None

    def comma(self, start: int, end: int) -> int | None:
        """Return the first comma of a flow collection in a stretch."""
        return self._first(self._commas, start, end)

    def value_start(self, node: yaml.Node) -> int:
        """Return the offset behind an anchor and a tag."""
        match = PROPERTIES.match(
            self.text, node.start_mark.index, max(node.end_mark.index, node.start_mark.index)
        )
        return node.start_mark.index if match is None or isinstance(node, Alias) else match.end()

    def content_end(self, node: yaml.Node) -> int:
        """Return the offset behind the last character of a value; blank lines after a block are no part."""
        if id(node) not in self._ends:
            self._ends[id(node)] = self._content_end(node)
        return self._ends[id(node)]

    def _content_end(self, node: yaml.Node) -> int:
        start, end = node.start_mark.index, node.end_mark.index
        if is_block(node):
            return self.content_end(self.slots(node)[-1].node) if node.value else end
        if self.sign(node) is not None:
            raw = self.text[start:end]
            content = raw.rstrip(f" \t{BREAKS}")
            tail = raw[len(content) :]
            # Blank lines are content where the block keeps them, and where they are longer than its indent.
            if "+" in BREAK.split(raw, maxsplit=1)[0] or " " in tail or "\t" in tail:
                return end - len(self.newline) if tail.endswith(self.newline) else end
            return start + len(content)
        return end

    def remark(self, slot: Node) -> Comment | None:
        """Return the comment on the line of a value: behind its end; of a block, behind its key."""
        at = self.remark_place(slot)
        comment = next(iter(self.comments_in(at, self.line_end(at))), None)
        return comment if comment is None or not self.text[at : comment.start].strip() else None

    def remark_place(self, slot: Node) -> int:
        """Return where a comment on the value may begin."""
        if is_block(slot.node):
            return self._behind_properties(slot)
        return self.sign(slot.node) or slot.node.end_mark.index

    def sign(self, node: yaml.Node) -> int | None:
        """Return the offset behind the ``|`` or ``>`` of a block scalar and its indicators; ``None``
        for others.
        """
        if not isinstance(node, yaml.ScalarNode) or node.style not in ("|", ">"):
            return None
        match = SIGN.match(self.text, self.value_start(node))
        return match.end() if match else None

    def _behind_properties(self, slot: Node) -> int:
        match = LEADING.match(self.text, slot.behind)
        return match.end() if match else slot.behind

    def remarks(self) -> dict[KeyPath, Comment]:
        """Return the comment on the line of each value that may have one, by path."""
        return dict(self._remarks((), self.root))

    def _remarks(self, path: KeyPath, node: yaml.Node) -> Iterator[tuple[KeyPath, Comment]]:
        slots = self.slots(node)
        for slot, step in zip(slots, steps(path, node, slots), strict=True):
            inner = (*path, *step)
            comment = self.remark(slot) if is_block(node) else None
            if comment is not None:
                yield inner, comment
            yield from self._remarks(inner, slot.node)


def is_block(node: yaml.Node) -> bool:
    """Return whether it is a map or a list in block style."""
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def steps(path: KeyPath, node: yaml.Node, slots: list[Node]) -> list[KeyPath]:
    """Return the steps to the entries, as changes name them: an entry with a key is found by it, wherever it
    is.
    """
    if isinstance(node, yaml.MappingNode):
        return [(s.step,) for s in slots]
    return labels(path, [_plain(s.node) for s in slots])


def labels(path: KeyPath, items: list[Any]) -> list[KeyPath]:
    """Return the steps to a list's entries: the key of an option, the name of a named map, else the
    position.
    """
    if not items or keyed(path, items) is None:
        return [(index,) for index in range(len(items))]
    names = [document_keys.parse(i).key if isinstance(i, str) else i["name"] for i in items]
    counts, before, steps_of_items = Counter(names), Counter[str](), list[KeyPath]()
    for name in names:
        steps_of_items.append((name,) if counts[name] == 1 else (name, before[name]))
        before[name] += 1
    return steps_of_items


def _plain(node: yaml.Node) -> Any:
    """Return as much of a value as its label requires."""
    node = node.value if isinstance(node, Alias) else node
    if isinstance(node, yaml.MappingNode):
        pairs = ((k.value, v.value) for k, v in node.value if isinstance(v, yaml.ScalarNode))
        return {k: v for k, v in pairs if k == "name"}
    return node.value if isinstance(node, yaml.ScalarNode) else None


Pairs = list[tuple[int | None, int | None]]
MOST_COMPARED = 300  # entries of a list: finding what moved takes time by their square


def aligned(path: KeyPath, have: list[Any], want: list[Any]) -> Pairs:
    """Return pairs of positions of equal or replaced entries, in order; ``None`` stands for a missing one."""
    named = keyed(path, have) is not None and keyed(path, want) is not None
    one, other = ([canonical(i) for i in (labels(path, side) if named else side)] for side in (have, want))
    pairs: Pairs = []
    if max(len(one), len(other)) > MOST_COMPARED:
        return _side_by_side(one, other)
    for tag, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "replace" and named:
            pairs += [(i, None) for i in range(a, b)] + [(None, j) for j in range(c, d)]
        else:
            pairs += zip_longest(range(a, b), range(c, d))
    return pairs


def _side_by_side(one: list[str], other: list[str]) -> Pairs:
    """Return pairs of positions in lists too long to compare: common ends, and all between in order."""
    begun = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
    behind = zip(reversed(one[begun:]), reversed(other[begun:]), strict=False)
    ended = len(list(takewhile(lambda pair: pair[0] == pair[1], behind)))
    between = zip_longest(range(begun, len(one) - ended), range(begun, len(other) - ended))
    same_end = zip(range(len(one) - ended, len(one)), range(len(other) - ended, len(other)), strict=True)
    return [*((i, i) for i in range(begun)), *between, *same_end]
