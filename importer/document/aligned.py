"""Which entries of two lists belong together: those that stayed, and those that took another's place."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any

from importer.document.diff import Path, keyed
from importer.document.digest import canonical
from importer.document.layout import labels

Pairs = list[tuple[int | None, int | None]]
MOST_COMPARED = 300  # entries of a list: finding what moved takes time by their square


def aligned(path: Path, have: list[Any], want: list[Any]) -> Pairs:
    """Positions of entries that are the same or take each other's place, in order; ``None``: has none."""
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
    """Positions in lists too long to be compared: what both begin and end with, and all between in order."""
    begun = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
    behind = zip(reversed(one[begun:]), reversed(other[begun:]), strict=False)
    ended = len(list(takewhile(lambda pair: pair[0] == pair[1], behind)))
    between = zip_longest(range(begun, len(one) - ended), range(begun, len(other) - ended))
    same_end = zip(range(len(one) - ended, len(one)), range(len(other) - ended, len(other)), strict=True)
    return [*((i, i) for i in range(begun)), *between, *same_end]
