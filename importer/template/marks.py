"""Markers in rendered text: where they stand, and cuts that never fall inside one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Shapes in which chat templates write markers; declared tokens are honoured besides.
SHAPE = re.compile(
    r"<\|(?:open|close)\|>\w+<\|sep\|>"  # a tag spelled with three tokens
    r"|<[|｜][^<>\n]{1,60}[|｜]>"  # <|im_start|>, <｜tool▁calls▁begin｜>
    r"|<[^<>\s]{1,60}>"  # <tool_call>, </seed:think>, <|channel>, <tool_call|>
    r"|\[/?[A-Z][A-Z_]{1,40}\]"  # [TOOL_CALLS], [/THINK]
)
LONGEST = 160  # no marker is longer
THINK = re.compile(r"[<\[][^<>\[\]\s]*(?:think|thought|reason)[^<>\[\]\s]*[>\]]", re.IGNORECASE)
# What ends a turn where no file says so: exact names, because closing markers of calls look much alike.
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
        # A token without any sign in it is a word piece, not a marker.
        words = sorted(
            {d for d in declared if 1 < len(d) <= LONGEST and not d.isalnum()}, key=len, reverse=True
        )
        self._declared = re.compile("|".join(map(re.escape, words))) if words else None

    def boundary(self, text: str, index: int) -> int:
        """The largest position at or before ``index`` that stands in no marker of ``text``."""
        while True:
            moved = min((s for s, e in self._around(text, index) if s < index < e), default=index)
            if moved == index:
                return index
            index = moved

    def prefix(self, left: str, right: str) -> int:
        """Length of what both texts begin with, cut at a boundary of both."""
        index = common_prefix(left, right)
        while True:
            moved = self.boundary(left, self.boundary(right, index))
            if moved == index:
                return index
            index = moved

    def suffix(self, left: str, right: str) -> str:
        """What both texts end with, beginning at a boundary of both."""
        length = common_prefix(left[::-1], right[::-1])
        while length and not all(self.boundary(t, len(t) - length) == len(t) - length for t in (left, right)):
            length -= 1
        return left[len(left) - length :]

    def _around(self, text: str, index: int) -> list[tuple[int, int]]:
        low, high = max(0, index - LONGEST), min(len(text), index + LONGEST)
        spans = [(m.start(), m.end()) for m in SHAPE.finditer(text, low, high)]
        if self._declared is not None:
            spans += [(m.start(), m.end()) for m in self._declared.finditer(text, low, high)]
        return spans


def common_prefix(left: str, right: str) -> int:
    """How many characters both texts begin with."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def last_marker(text: str) -> str:
    """From the last marker of ``text`` to its end; empty where it has none."""
    found = list(SHAPE.finditer(text))
    return text[found[-1].start() :] if found else ""


def first_marker(text: str) -> str:
    """The first marker of ``text``, or nothing."""
    found = SHAPE.search(text)
    return found.group() if found else ""


@lru_cache(maxsize=256)
def mirror(marker: str) -> str:
    """The closing marker of an opening one, or the opening of a closing one, by its spelling."""
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
