"""Markers in rendered text: their shapes, and the tokens that a repository's small files declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

# Shapes of the markers in chat templates; declared tokens count too.
SHAPE = re.compile(
    r"<\|(?:open|close)\|>\w{1,140}+<\|sep\|>"  # a tag spelled with three tokens
    r"|<[|｜][^<>\n]{1,60}[|｜]>"  # <|im_start|>, <｜tool▁calls▁begin｜>
    r"|<[^<>\s]{1,60}>"  # <tool_call>, </seed:think>, <|channel>, <tool_call|>
    r"|\[/?[A-Z][A-Z_]{1,40}\]"  # [TOOL_CALLS], [/THINK]
)
LONGEST = 160  # no marker is longer
THINK = re.compile(r"[<\[](?=[^<>\[\]\s]*?(?:think|thought|reason))[^<>\[\]\s]*+[>\]]", re.IGNORECASE)
# Ends of turns that no file declares: exact names, because closing markers of calls look similar.
ENDS = re.compile(
    r"(?:<[|｜](?:im_end|endoftext|eo[tm](?:_id)?|end|return|calls?|role_end|end_of_msg)[|｜]>"
    r"|<[|｜]?end[_▁]of[_▁](?:text|turn|sentence|msg|message)(?:_token)?[|｜]?>"
    r"|<[|｜]?(?:\w+[:_])?eos(?::\w+)?[|｜]?>"
    r"|</s>|<turn\|>|<\|tool_response>|\[e~\[)$",
    re.IGNORECASE,
)


class Marks:
    """The markers of one template: shapes, and the tokens its repository declares."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        # A token of letters and digits only is a word piece, not a marker.
        self._words = {d for d in declared if 1 < len(d) <= LONGEST and not d.isalnum()}
        self._lengths: dict[str, list[int]] = {}  # by the first two characters, the longest first
        for length, begun in sorted({(len(w), w[:2]) for w in self._words}, reverse=True):
            self._lengths.setdefault(begun, []).append(length)

    def boundary(self, text: str, index: int) -> int:
        """Return the largest position at or before ``index`` outside the markers of ``text``."""
        low = index
        while True:
            low = max(0, low - LONGEST)
            high = min(len(text), index + LONGEST)
            spans = [*self._shapes(text, low, high), *self._declared(text, low, high)]
            while (moved := min((s for s, e in spans if s < index < e), default=index)) < index:
                index = moved
            if (
                low == 0 or index - low >= LONGEST
            ):  # a marker that begins before ``low`` ends before ``index``
                return index

    def prefix(self, left: str, right: str) -> int:
        """Return the length of the common prefix, cut at a boundary of both texts."""
        index = common_prefix(left, right)
        while True:
            moved = self.boundary(left, self.boundary(right, index))
            if moved == index:
                return index
            index = moved

    def suffix(self, left: str, right: str) -> str:
        """Return the common suffix, from a boundary of both texts."""
        length = common_prefix(left[::-1], right[::-1])
        walks = [
            (len(text), _Walk(spans(text, max(0, len(text) - length - LONGEST), len(text))))
            for text in (left, right)
            for spans in (self._shapes, self._declared)
        ]
        before = -1
        while length != before:
            before = length
            for end, walk in walks:
                length = end - walk.free(end - length)
        return left[len(left) - length :]

    def _shapes(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        return (m.span() for m in SHAPE.finditer(text, low, high))

    def _declared(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of declared tokens between ``low`` and ``high``: at each place the longest."""
        while self._lengths and low < high:
            for length in self._lengths.get(text[low : low + 2], ()):
                if low + length <= high and text[low : low + length] in self._words:
                    yield low, low + length
                    low += length
                    break
            else:
                low += 1


class _Walk:
    """One pass through spans that do not overlap, for ascending positions."""

    def __init__(self, spans: Iterator[tuple[int, int]]) -> None:
        self._spans = spans
        self._next = next(spans, None)
        self._end = 0  # of the last span that begins before the position

    def free(self, at: int) -> int:
        """Return the first position from ``at`` on outside all spans."""
        while self._next is not None and self._next[0] < at:
            self._end = self._next[1]
            self._next = next(self._spans, None)
        return max(at, self._end)


def common_prefix(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def last_marker(text: str) -> str:
    """Return ``text`` from its last marker on; empty without a marker."""
    matches = list(SHAPE.finditer(text))
    return text[matches[-1].start() :] if matches else ""


def first_marker(text: str) -> str:
    """Return the first marker of ``text``; empty without a marker."""
    match = SHAPE.search(text)
    return match.group() if match else ""


@lru_cache(maxsize=256)
def mirror(marker: str) -> str:
    """Return the closing marker of an opening one, or the opening of a closing one, by its spelling."""
    for opening, closing in (("<|open|>", "<|close|>"), ("<", "</"), ("[", "[/")):
        if closing != "</" and marker.startswith(closing):
            return opening + marker[len(closing) :]
        if closing == "</" and marker.startswith("</"):
            return "<" + marker[2:]
    for opening, closing in (("<|open|>", "<|close|>"), ("START", "END"), ("begin", "end"), ("start", "end")):
        if opening in marker:
            return marker.replace(opening, closing)
        if closing in marker:
            return marker.replace(closing, opening)
    if re.fullmatch(r"<\|[^|]+>", marker):
        return f"<{marker[2:-1]}|>"
    return marker[0] + "/" + marker[1:]
