"""The wire format of tool calls, learnt from samples: markers, and the encoding of arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from importer.chat_template.cases import ONE
from importer.chat_template.markers import SHAPE
from importer.chat_template.samples import Sample
from importer.frozen import frozen

Encoding = Literal["json", "pythonic", "tags", "text"]
WORD = re.compile(r"^\s*[A-Za-z_]\w+(?=\[\s*\{)")  # a word as the marker of a list of calls
TAG = re.compile(r"<[^<>\n]{1,160}>")


@frozen
class WireFormat:
    """A learnt format.

    ``markers``   of one call, without the call's own words; ``<function=`` for a tag with the name in it.
    ``encoding``  of the arguments: ``json``, ``pythonic`` (``key=value``), ``tags`` around keys or values,
                  or ``text``.
    """

    markers: tuple[str, ...]
    encoding: Encoding

    @property
    def label(self) -> str:
        """Return the format's name for people: its first marker and the encoding."""
        return f"{self.markers[0]} {self.encoding}" if self.markers else self.encoding


def learn_format(samples: Iterable[Sample]) -> WireFormat | None:
    """Return the format of the rendered calls; ``None`` where no call was rendered."""
    one = next((sample for sample in samples if sample.case == "one-call"), None)
    if one is None:
        return None
    text = one.behind
    return WireFormat(tuple(dict.fromkeys(_each(text))), _encoding(text))


def unmarked(sample: Sample) -> Sample | None:
    """Return a call without its markers; ``None`` for a format without any.

    A parser that reads it as well reads almost anything that looks like a call.
    """
    text = sample.behind
    bare = SHAPE.sub(lambda match: match[0] if ONE.name in match[0] else "", WORD.sub("", text)).strip()
    if bare == text.strip() or ONE.name not in bare:
        return None
    return replace(sample, case="unmarked", completion=bare, content=None, lead=0)


def _each(text: str) -> list[str]:
    """Return every marker in the text, a tag that holds a word of the call up to that word."""
    words = (ONE.name, *ONE.arguments, *map(str, ONE.arguments.values()))
    found = [m[0] for m in SHAPE.finditer(text)] + [m[0] for m in TAG.finditer(text) if " " in m[0]]
    cuts = [[at for word in words if (at := marker.find(word)) > 0] for marker in found]
    return [m[: min(at)].rstrip("\"' ") if at else m for m, at in zip(found, cuts, strict=True)]


def _encoding(text: str) -> Encoding:
    ((key, value),) = ONE.arguments.items()
    if re.search(rf'"{key}"\s*:\s*{re.escape(json.dumps(value))}', text):
        return "json"
    if re.search(rf"\b{key}\s*[=:]\s*\S{{0,12}}{re.escape(str(value))}", text) and not TAG.search(text):
        return "pythonic"
    between = text[text.find(key) + len(key) : text.rfind(str(value))]
    return "tags" if SHAPE.search(between) or ">" in between else "text"
