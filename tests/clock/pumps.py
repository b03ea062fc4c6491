"""The parts of a pattern that may repeat: what leads to each, and texts that it matches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

LENGTH = 800  # characters of a text
MANY = 8  # repetitions, of nested parts in all, from which a part is one that repeats
WORDS = 6  # texts of one part
REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
CLASSES = {
    "CATEGORY_SPACE": " \n", "CATEGORY_DIGIT": "0", "CATEGORY_WORD": "a0_", "CATEGORY_NOT_WORD": "- <\n",
    "CATEGORY_NOT_SPACE": "a0-<", "CATEGORY_NOT_DIGIT": "a -<\n",
}  # fmt: skip
ANYTHING = "a0 -<\n!b"


def parsed(pattern: str) -> Any:
    """Return a pattern as Python's own parser has it."""
    return re._parser.parse(pattern, re.DOTALL)


def repeats(nodes: Any, head: str, times: int = 1) -> Iterator[tuple[str, Any]]:
    """Of a parsed pattern that may repeat ``times``, what leads to each repeated part, and the part."""
    for node in nodes:
        most = int(node[1][1]) if str(node[0]) in REPEATS else 1
        if most > 1 and most * times > MANY:
            yield head, node[1][2]
        for inner in _inner(node):
            yield from repeats(inner, head, max(most, 1) * times)
        head += words([node])[0]


def _inner(node: Any) -> Sequence[Any]:
    """Return the patterns inside a node."""
    name, value = str(node[0]), node[1]
    if name in REPEATS:
        return (value[2],)
    if name == "SUBPATTERN":
        return (value[3],)
    if name == "BRANCH":
        return tuple(value[1])
    if name == "ATOMIC_GROUP":
        return (value,)
    if name in ("ASSERT", "ASSERT_NOT"):
        return (value[1],)
    return tuple(way for way in value[1:] if way is not None) if name == "GROUPREF_EXISTS" else ()


def words(nodes: Any) -> list[str]:
    """Return texts that a parsed pattern matches, look-arounds aside: the first, and each other choice of one
    part with the first of all others; a part that may be left out stands once.
    """
    choices = [_choices(node) for node in nodes]
    firsts = [choice[0] for choice in choices]
    found = ["".join(firsts)]
    for place, choice in enumerate(choices):
        found += ["".join((*firsts[:place], other, *firsts[place + 1 :])) for other in choice[1:]]
    return list(dict.fromkeys(found))[:WORDS] or [""]


def _choices(node: Any) -> list[str]:
    name, value = str(node[0]), node[1]
    if name == "LITERAL":
        return [chr(value)]
    if name == "NOT_LITERAL":
        return [c for c in ANYTHING if ord(c) != value]
    if name == "ANY":
        return [*ANYTHING]
    if name == "IN":
        return _of_set(value)
    if name in REPEATS:
        return [word * min(max(1, int(value[0])), LENGTH) for word in words(value[2])]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [""]
    ways = (words(inner) for inner in _inner(node))
    return [word for turn in zip_longest(*ways) for word in turn if word is not None] or [""]


def _of_set(items: Any) -> list[str]:
    """Return characters of a set; of a set that excludes, those that are not excluded."""
    if str(items[0][0]) == "NEGATE":
        taken = re.compile("[" + "".join(_written(item) for item in items[1:]) + "]")
        return [c for c in ANYTHING + "\ue000" if not taken.match(c)] or [""]
    found = []
    for item in items:
        name, value = str(item[0]), item[1]
        if name == "RANGE":
            found += [chr(value[0]), chr(value[1])]
        else:
            found += [chr(value)] if name == "LITERAL" else [*CLASSES.get(str(value), "a")]
    return list(dict.fromkeys(found))


WRITTEN = {"SPACE": r"\s", "DIGIT": r"\d", "WORD": r"\w"}


def _written(item: Any) -> str:
    """Return an item of a set as it is written."""
    name, value = str(item[0]), item[1]
    if name == "LITERAL":
        return re.escape(chr(value))
    if name == "RANGE":
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    kind = str(value).removeprefix("CATEGORY_")
    written = WRITTEN[kind.removeprefix("NOT_")]
    return written.upper() if kind.startswith("NOT_") else written
