"""The markers in each parser's own source, by engine: generated tables, and parsers by their markers.

``gen_defaults`` reads the markers from the released sources of the engines. They stand in for the proof where
no engine is installed, break ties between parsers of equal effect, and give a parser its name elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["tool", "reasoning"]
FOLDER = Path(__file__).with_name("markers")
KINDS: Mapping[str, Kind] = {"tool_parser": "tool", "reasoning_parser": "reasoning"}
ENGINES = ("vllm", "mlx", "mlx-vlm", "vllm-mlx")
SIMILAR = 0.3  # share of common markers from which two parsers are for one format


@dataclass(frozen=True, slots=True)
class ParserMarkers:
    """One parser's markers, in the order of its source; ``names`` counts the names of its class."""

    name: str
    markers: tuple[str, ...]
    names: int

    def strangers(self, text: str) -> int:
        """Return the number of its markers that do not stand in the text."""
        return sum(marker not in text for marker in self.markers)


@cache
def load(engine: str, kind: Kind) -> Mapping[str, ParserMarkers]:
    """Return the markers of an engine's parsers, by name; empty for an engine without a table."""
    path = FOLDER / f"{engine}.json"
    if engine not in ENGINES or not path.is_file():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))[kind]
    return {
        name: ParserMarkers(name, tuple(row["markers"]), row.get("names", 1)) for name, row in rows.items()
    }


def warm() -> None:
    """Read all tables: the sandbox's child opens no file later."""
    for engine in ENGINES:
        for kind in KINDS.values():
            load(engine, kind)


def fitting(engine: str, kind: Kind, needed: Collection[str], text: str) -> list[str]:
    """Return the parsers that know every marker of ``needed``, the best match first.

    A reasoning parser knows the turns and calls of its family: the best match has the fewest markers that
    do not stand in ``text``, the rendered conversation. A tool parser serves any family: the class
    with the most names comes first.
    """
    known = load(engine, kind).values() if needed else ()
    fit = [p for p in known if all(_knows(p.markers, marker) for marker in needed)]
    ranks = ((p.strangers(text), -p.names, p.name) for p in fit)
    if kind == "tool":
        ranks = ((-p.names, p.strangers(text), p.name) for p in fit)
    return [name for *_, name in sorted(ranks)]


def _knows(markers: Collection[str], marker: str) -> bool:
    """Return whether a marker is among them, or begins as one that takes a name (``<function=``)."""
    return any(marker == m or (m[-1:] in "=[" and marker.startswith(m)) for m in markers)


def translate(
    key: str, parser: str, engine: str, other: str, known: Container[str] | None = None
) -> str | None:
    """Return the parser of ``other`` for the format that ``parser`` of ``engine`` reads, or ``None``.

    A parser of the same name is the best match, else that with the most common markers. ``known`` are the
    names that the version of ``other`` has.
    """
    kind = KINDS[key]
    names = load(other, kind)
    usable = [p for p in names.values() if known is None or p.name in known]
    same = next((p.name for p in usable if _plain(p.name) == _plain(parser)), None)
    own = load(engine, kind).get(parser)
    if same is not None or own is None:
        return same
    ranked = sorted(((_common(own, p), p) for p in usable), key=lambda pair: -pair[0])
    return ranked[0][1].name if ranked and ranked[0][0] >= SIMILAR else None


def _common(one: ParserMarkers, other: ParserMarkers) -> float:
    """Return the share of markers that two parsers have in common: of the smaller set, then of both."""
    shared = {*one.markers} & {*other.markers}
    if not shared:
        return 0.0
    smaller, both = min(len({*one.markers}), len({*other.markers})), len({*one.markers} | {*other.markers})
    return (len(shared) / smaller + len(shared) / both) / 2


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower()) or name


def markers_in(text: str, engine: str, kind: Kind) -> Iterator[str]:
    """Yield every marker of the engine's parsers that stands in the text, each once."""
    seen = dict.fromkeys(m for p in load(engine, kind).values() for m in p.markers)
    yield from (marker for marker in seen if marker in text)
