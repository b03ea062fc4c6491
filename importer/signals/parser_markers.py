"""The markers in each parser's own source, by engine: generated tables, and parsers by their markers.

``gen_defaults`` reads the markers from the released sources of the engines. They stand in for the proof where
no engine is installed, break ties between parsers of equal effect, and give a parser its name elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["tool", "reasoning"]
FOLDER = Path(__file__).with_name("markers")
KINDS: Mapping[str, Kind] = {"tool_parser": "tool", "reasoning_parser": "reasoning"}
ENGINES = ("vllm", "mlx", "mlx-vlm", "vllm-mlx", "sglang")
SIMILAR = 0.5  # share of common markers from which two parsers are for one format
FEW = 3  # markers; fewer of them more or less make no other format


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

    At least half of a parser's markers stand in ``text``, the rendered conversation; the best match has the
    fewest that do not. Of tool parsers with few such markers the class with the most names comes first: a
    pair of optional markers makes no other format, and that class serves the most families.
    """
    known = load(engine, kind).values() if needed else ()
    fit = [p for p in known if all(_knows(p.markers, marker) for marker in needed)]
    close = [(p, p.strangers(text)) for p in fit if 2 * p.strangers(text) <= len(p.markers)]
    few = FEW if kind == "tool" else 1
    return [p.name for p, far in sorted(close, key=lambda c: (c[1] // few, -c[0].names, c[1], c[0].name))]


def closeness(engine: str, kind: Kind, needed: Sequence[str], text: str) -> dict[str, tuple[int, ...]]:
    """Return for each parser how close it is to a format, the closest with the least key.

    ``needed`` are the format's markers, the opening one first: a parser without it is for another format.
    Then count the known ones of them, and the parser's own markers in ``text`` against those that are not.
    """
    keys: dict[str, tuple[int, ...]] = {}
    for parser in load(engine, kind).values():
        known = [_knows(parser.markers, marker) for marker in needed]
        far = parser.strangers(text)
        near = len(parser.markers) - far
        match = (far // FEW, -parser.names, far) if kind == "tool" else (far - near, -parser.names)
        keys[parser.name] = (not any(known[:1]), -sum(known), *match)
    return keys


def _knows(markers: Collection[str], marker: str) -> bool:
    """Return whether a marker is among them, or begins as one that takes a name (``<function=``)."""
    return any(marker == m or (m[-1:] in "=[" and marker.startswith(m)) for m in markers)


def translate(
    key: str, parser: str, engine: str, other: str, known: Container[str] | None = None
) -> str | None:
    """Return the parser of ``other`` for the format that ``parser`` of ``engine`` reads, or ``None``.

    A parser of the same name is the best match, else that with the most common markers, and of these the one
    with few further ones and the most names. ``known`` are the names that the version of ``other`` has.
    """
    kind = KINDS[key]
    names = load(other, kind)
    usable = [p for p in names.values() if known is None or p.name in known]
    own = load(engine, kind).get(parser)
    if own is None or any(p.name == parser for p in usable):
        return parser if own is not None else None
    named = [m for m in own.markers if ("call" if kind == "tool" else "think") in m.lower()]
    shares = {p.name: _common(own, p, named if kind == "tool" else named[:1]) for p in usable}
    close = [p for p in usable if shares[p.name][0] >= SIMILAR]
    best = min(close, key=lambda p: (*shares[p.name][1:], -p.names), default=None)
    return None if best is None else best.name


def _common(
    one: ParserMarkers, other: ParserMarkers, vital: Collection[str]
) -> tuple[float, float, int, int]:
    """Return the share of common markers in the smaller set, then a key of the match, the best first.

    The share is 0 where ``other`` lacks one of ``vital``, the markers that begin a call or reasoning.
    """
    shared = [m for m in one.markers if any(_alike(m, o) for o in other.markers)]
    smaller = min(len(one.markers), len(other.markers))
    if not smaller or not all(m in shared for m in vital):
        return 0.0, 0.0, 0, 0
    share = min(len(shared) / smaller, 1.0)
    return share, -share, -len(shared), max(len(other.markers) - len(shared), 0) // FEW


def _alike(one: str, other: str) -> bool:
    """Return whether two markers are one, perhaps with a word behind it: ``<|channel>thought``."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and (short == long or short[-1:] == ">" or long[len(short) :] == "<|sep|>")


def markers_in(text: str, engine: str, kind: Kind) -> Iterator[str]:
    """Yield every marker of the engine's parsers that stands in the text, each once."""
    seen = dict.fromkeys(m for p in load(engine, kind).values() for m in p.markers)
    yield from (marker for marker in seen if marker in text)
