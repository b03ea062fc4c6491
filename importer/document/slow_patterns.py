"""Patterns of a stranger: how long they take on near misses, which are made from the patterns themselves.

A near miss is what leads to a part that may repeat, then that part over and over, then a misfit. A pattern
that grows with the cube of the text, or faster, exceeds its time on one of them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product, zip_longest
from threading import Lock
from typing import Any

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.sandbox import OverLimit, Task

SECONDS = 5.0  # of processor time for all patterns of one document
EACH = 0.1  # of processor time for one near miss; what grows with the square needs 0.01 s
LENGTH = 800  # characters of a near miss
MANY = 8  # repetitions, of nested parts in all, from which a part is one that repeats
WORDS = 6  # of one part that are tried, and of one part behind another
TAILS = ("\x00!0a -<\n~", "")  # one with a misfit for almost any part, and the end
REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
CLASSES = {
    "CATEGORY_SPACE": " \n", "CATEGORY_DIGIT": "0", "CATEGORY_WORD": "a0_", "CATEGORY_NOT_WORD": "- <\n",
    "CATEGORY_NOT_SPACE": "a0-<", "CATEGORY_NOT_DIGIT": "a -<\n",
}  # fmt: skip
ANYTHING = "a0 -<\n!b"
# Alternatives of one character each are one set to Python's ``re``, and two ways to transformers' ``regex``.
ESCAPE_SET_OR_BAR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\|", re.DOTALL)


class PatternReason(ReasonKind):
    """What is wrong with a pattern."""

    SLOW = "slow", "the pattern takes too long on some texts: a model's answer could hold up the engine"
    UNREAD = "unread", "the pattern is no regular expression of Python's"


@frozen
class Patterns:
    """Regular expressions to be tried."""

    texts: Sequence[str]


@frozen
class Tried:
    """The place of the first pattern that is refused, and why; none where all are quick."""

    place: int | None = None
    reason: PatternReason | None = None


TRY = Task(
    "importer.document.slow_patterns:TRY", "importer.document.slow_patterns:tried",
    Patterns, Tried, SECONDS,
)  # fmt: skip
_one = Lock()  # a document has few patterns: one child at a time is enough


@lru_cache(maxsize=256)
def refused(texts: tuple[str, ...]) -> tuple[int, Reason] | None:
    """Return the place of a pattern that takes too long, or that nobody can read, with the reason.

    Raises SandboxError where the child was starved or lost twice.
    """
    from importer.sandbox import Sandbox  # not for the child, and for few documents

    with _one, Sandbox() as sandbox:
        found = sandbox.call(TRY, Patterns(texts), "the patterns of a response template")
    if isinstance(found, OverLimit):
        return 0, Reason(PatternReason.SLOW)
    return None if found.place is None or found.reason is None else (found.place, Reason(found.reason))


def tried(question: Patterns) -> Tried:
    """Search each near miss for its pattern; runs in the child."""
    from importer.sandbox.limits import OutOfTimeError, processor

    for place, text in enumerate(question.texts):
        try:
            with warnings.catch_warnings(action="ignore"):
                misses = dict.fromkeys(near_misses(text, LENGTH))
                pattern = re.compile(_apart(text), re.DOTALL)
        except (re.error, OverflowError, RecursionError):
            return Tried(place, PatternReason.UNREAD)
        try:
            for miss in misses:
                with processor(EACH):
                    pattern.search(miss)
        except OutOfTimeError:
            return Tried(place, PatternReason.SLOW)
    return Tried()


def _apart(text: str) -> str:
    """Return the pattern with its alternatives kept apart."""
    return ESCAPE_SET_OR_BAR.sub(lambda m: "(?=)|" if m[0] == "|" else m[0], text)


def near_misses(pattern: str, length: int) -> Iterator[str]:
    """Yield near misses of about ``length`` characters."""
    for head, unit, least in pumps(pattern):
        for lead in dict.fromkeys((head, "")):
            for times in (max(1, length // len(unit)), *((min(least, length) - 1,) if least > 1 else ())):
                for tail in TAILS:
                    yield lead + unit * times + tail


def pumps(pattern: str) -> Iterator[tuple[str, str, int]]:
    """Yield what leads to each repeated part, a text of it that may repeat, and how often it has to."""
    for head, body, least in repeated(parsed(pattern), ""):
        found = words(body)
        pairs = [one + other for one, other in product(found, repeat=2) if one != other]
        for unit in dict.fromkeys((*found, *pairs, *"".join(found))):
            if unit:
                yield head, unit, least


def parsed(pattern: str) -> Any:
    """Return a pattern as Python's own parser has it."""
    return re._parser.parse(pattern, re.DOTALL)  # type: ignore[attr-defined] # noqa: SLF001


def repeated(nodes: Any, head: str, times: int = 1) -> Iterator[tuple[str, Any, int]]:
    """Of a parsed pattern that may repeat ``times``, yield what leads to each repeated part, the part, and
    its least number.
    """
    for node in nodes:
        most = int(node[1][1]) if str(node[0]) in REPEATS else 1
        if most > 1 and most * times > MANY:
            yield head, node[1][2], int(node[1][0])
        for inner in _inner(node):
            yield from repeated(inner, head, max(most, 1) * times)
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
