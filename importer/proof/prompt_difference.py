"""The difference between two prompts of one conversation: its kind and its place."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from importer.proof.conversations import Field, Leaf
from importer.proof.result import PromptDifference
from importer.reasons import Reason

PART = re.compile(r"""["']type["']\s*:\s*["'](?:text|image)["']""")
CONSTANTS = {"True": "true", "False": "false", "None": "null"}
EXCERPT = 60


def wholeness(text: str, leaves: Sequence[Leaf]) -> tuple[int, int, int, int]:
    """Return the numbers of absent values, printed parts, nulls, and values that are not in JSON."""
    structured = [leaf.value for leaf in leaves if isinstance(leaf.value, (list, dict))]
    foreign = sum(not any(form in text for form in _json_forms(value)) for value in structured)
    return len([*absent(text, leaves)]), len(PART.findall(text)), text.count("None"), foreign


def absent(text: str, leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    """Yield the values without a trace in the text; of lists and objects every text in them is looked for."""
    for leaf in leaves:
        if not all(any(form in text for form in _forms(word)) for word in _words(leaf.value)):
            yield leaf


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)


def _forms(word: str) -> set[str]:
    """Return a text as it may stand in a prompt: itself, in JSON, in JSON for pages, in Python's quotes."""
    escaped = json.dumps(word)[1:-1]
    paged = escaped
    for character in "<>&'":
        paged = paged.replace(character, f"\\u{ord(character):04x}")
    return {word, word.strip(), escaped, json.dumps(word, ensure_ascii=False)[1:-1], paged, repr(word)[1:-1]}


def _json_forms(value: Any) -> Iterator[str]:
    for ascii_only in (False, True):
        yield json.dumps(value, ensure_ascii=ascii_only)
        yield json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
        yield json.dumps(json.dumps(value, ensure_ascii=ascii_only))[1:-1]


def difference(case: str, ours: str, theirs: str, leaves: Sequence[Leaf]) -> Reason | None:
    """Return the finding of two prompts, or ``None`` for equal ones."""
    if ours == theirs:
        return None
    at = _first_difference(ours, theirs)
    fields = {"case": case, "ours": _excerpt(ours, at), "theirs": _excerpt(theirs, at)}
    there = place_at(ours, at, leaves)
    lost = _lost(ours, theirs, there, leaves)
    if lost is not None:
        return Reason(PromptDifference.DROPPED, place=lost, **fields)
    if len(PART.findall(theirs)) > len(PART.findall(ours)):
        return Reason(PromptDifference.PARTS_PRINTED, place=there, **fields)
    same = _plain_words(ours) == _plain_words(theirs)
    return Reason(PromptDifference.FORM if same else PromptDifference.OTHER, place=there, **fields)


def _lost(ours: str, theirs: str, there: str, leaves: Sequence[Leaf]) -> str | None:
    """Return the place of a value that only our text has; a name stands in several places and is counted."""
    known = {id(leaf) for leaf in absent(ours, leaves)}
    lost = [leaf for leaf in absent(theirs, leaves) if id(leaf) not in known]
    if lost:
        return place(next((leaf for leaf in lost if leaf.message is not None), lost[0]))
    names = {leaf.value for leaf in leaves if leaf.field is Field.NAME}
    if any(theirs.count(name) < ours.count(name) for name in names):
        return f"{there.partition('.')[0]}.{Field.NAME}" if "." in there else there
    return None


def moved(ours: str, theirs: str, before: str, after: str) -> bool:
    """Return whether our text has something between two texts, and the other has white space alone."""
    between = [text.partition(before)[2].partition(after)[0].strip() for text in (ours, theirs)]
    return bool(between[0]) and not between[1]


def place(leaf: Leaf | None) -> str:
    """Return the place of a value: ``tools``, or role and field as ``tool.content``."""
    if leaf is None:
        return "prompt"
    return "tools" if leaf.message is None else f"{leaf.role}.{leaf.field}"


def place_at(text: str, at: int, leaves: Sequence[Leaf]) -> str:
    """Return the place of the first value that ends behind a position of the text; names are no places."""
    start = 0
    for leaf in leaves:
        words = [] if leaf.field is Field.NAME else [*_words(leaf.value)]
        found = max((text.find(form, start) for form in _forms(words[0])), default=-1) if words else -1
        if found >= 0:
            start = found
            if found + len(words[0]) > at:
                return place(leaf)
    return place(None)


def _without_entities(text: str) -> str:
    """Return the text without HTML's entities; unchanged where a number is too long for Python."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


def _plain_words(text: str) -> list[str]:
    """Return the words and signs of a text in one order, in Python's and JSON's values alike."""
    for python, constant in CONSTANTS.items():
        text = re.sub(rf"\b{python}\b", constant, text)
    text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)
    return sorted(re.findall(r"""\w+|[^\w\s"'\\]""", _without_entities(text)))


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _excerpt(text: str, at: int) -> str:
    return text[max(0, at - 12) : at + EXCERPT - 12]
