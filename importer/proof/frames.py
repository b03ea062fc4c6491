"""The text around the parts of a call, learnt from renderings: sections, calls, names, arguments.

Everything follows from three texts: before the first part, between two parts, and behind the last. What the
first two end with opens a part; what the last two begin with closes one; the rest opens and closes the
section. No format is known by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from importer.chat_template.markers import SHAPE, Marks
from importer.chat_template.samples import Sample
from importer.proof.wire_regex import ANY_ID, ANY_NUMBER

IDS = re.compile(r"c4ll\d{5}")  # the ids of ``chat_template.cases``
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Frame:
    """The text around the parts of a list: ``outer_open open PART close separator open PART close
    outer_close``.
    """

    outer_open: str = ""
    open: str = ""
    close: str = ""
    outer_close: str = ""
    separator: str = ""


def frame(before: str, between: str | None, behind: str, marks: Marks) -> Frame:
    """Return the frame of the parts; without two parts to compare, all of it belongs to the one."""
    if between is None:
        return Frame(open=before, close=behind)
    opens = marks.suffix(before, between)
    closes = between[: marks.prefix(between[: len(between) - len(opens)], behind)]
    return Frame(
        outer_open=before[: len(before) - len(opens)],
        open=opens,
        close=closes,
        outer_close=behind[len(closes) :],
        separator=between[len(closes) : len(between) - len(opens)],
    )


def general(text: str, *names: str) -> str:
    """Return learnt text without what another call would write otherwise: ids, counts, repeated names."""
    text = IDS.sub(ANY_ID, text)
    for name in names:
        text = text.replace(name, ANY_ID)
    written, end = [], 0
    for marker in SHAPE.finditer(text):
        written += [NUMBER.sub(ANY_NUMBER, text[end : marker.start()]), marker[0]]
        end = marker.end()
    return "".join([*written, NUMBER.sub(ANY_NUMBER, text[end:])])


@dataclass(frozen=True, slots=True)
class Located:
    """One call in a completion: the places of its name, and of each key with its value."""

    text: str
    name: tuple[int, int]
    arguments: tuple[tuple[int, int, int, int], ...]

    @property
    def end(self) -> int:
        """Return the place behind the last value, without arguments behind the name."""
        return self.arguments[-1][3] if self.arguments else self.name[1]


def written_calls(sample: Sample) -> str:
    """Return the completion without the reasoning before the calls."""
    return sample.completion[sample.lead :]


def locate(text: str, name: str, values: Mapping[str, str], start: int = 0) -> Located | None:
    """Return the places of a call from ``start`` on; ``values`` maps each key to its written value.

    Of a name that is repeated, the last before the first key counts.
    """
    first = text.find(name, start)
    if first < 0:
        return None
    places: list[tuple[int, int, int, int]] = []
    at = first + len(name)
    for key, value in values.items():
        key_at = text.find(key, at)
        value_at = text.find(value, key_at + len(key)) if key_at >= 0 else -1
        if value_at < 0:
            return None
        places.append((key_at, key_at + len(key), value_at, value_at + len(value)))
        at = places[-1][3]
    last = text.rfind(name, first, places[0][0]) if places else first
    return Located(text, (last, last + len(name)), tuple(places))
