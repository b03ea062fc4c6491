"""The difference between two prompts of one conversation: its kind, its place, and its weight."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.chat_template.request_coverage.compare import without_entities
from importer.proof.conversations import Field, Leaf
from importer.proof.prompt_result import PromptDifference
from importer.reasons import Reason

PART = re.compile(r"""["']type["']\s*:\s*["'](?:text|image)["']""")
CONSTANTS = {"True": "true", "False": "false", "None": "null"}
EXCERPT = 60


@dataclass(frozen=True, slots=True, order=True)
class Wholeness:
    """What a prompt lacks: the numbers of absent values, printed parts and values that are not in JSON."""

    absent: int
    parts: int
    nulls: int
    foreign: int


def wholeness(text: str, leaves: Sequence[Leaf]) -> Wholeness:
    """Return what a prompt of these values lacks."""
    structured = [leaf.value for leaf in leaves if isinstance(leaf.value, (list, dict))]
    foreign = sum(not any(form in text for form in _json_forms(value)) for value in structured)
    return Wholeness(len([*absent(text, leaves)]), len(PART.findall(text)), text.count("None"), foreign)


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
    for kind, alike in ALIKE.items():
        if alike(ours) == alike(theirs):
            return Reason(kind, place=there, **fields)
    return Reason(PromptDifference.OTHER, place=there, **fields)


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


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _formless(text: str) -> str:
    """Return the text without the marks by which Python's and JSON's values differ."""
    for python, constant in CONSTANTS.items():
        text = re.sub(rf"\b{python}\b", constant, text)
    text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"""[\s"'\\]""", "", without_entities(text))


def _words_in_order_of_letters(text: str) -> list[str]:
    """Return every word and sign of the text, sorted: equal for texts that differ in an order alone."""
    return sorted(re.findall(r"\w+|[^\w\s]", text))


# What two texts have in common where they differ in one respect alone.
ALIKE: Mapping[PromptDifference, Callable[[str], object]] = {
    PromptDifference.WHITESPACE: _spaceless,
    PromptDifference.VALUE_FORM: _formless,
    PromptDifference.KEY_ORDER: _words_in_order_of_letters,
}


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _excerpt(text: str, at: int) -> str:
    return text[max(0, at - 12) : at + EXCERPT - 12]
