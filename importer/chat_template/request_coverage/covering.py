"""The shapes of conversations as a covering array: each trait stands alone once, and with each other one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import TypeVar

from importer.chat_template.request_coverage.traits import (
    BASE,
    CALLING,
    FACTORS,
    LONG,
    NEEDS,
    OF_CALLS,
    PLACE,
    Shape,
    T,
    Trait,
)

L = TypeVar("L")
Row = tuple[L, ...]
Chosen = Mapping[int, L]  # levels by the number of their factor
Fill = Callable[[Chosen[L]], Row[L] | None]


def covering(
    factors: Sequence[Sequence[L]], fill: Fill[L], *, alone: Collection[L] = ()
) -> tuple[Row[L], ...]:
    """Return rows with each level by itself first, then rows until each possible pair of levels is in one.

    ``fill`` completes chosen levels with the simplest others, and returns ``None`` for levels that do not go
    together. Levels in ``alone`` stand in no pair beside those that ``fill`` gives them.
    """
    rows: dict[Row[L], None] = {}
    for number, levels in enumerate(factors):
        for level in levels:
            rows |= dict.fromkeys(row for row in [fill({number: level})] if row is not None)
    paired = [[level for level in levels if level not in alone] for levels in factors]
    left = {pair for one, two in combinations(range(len(paired)), 2) for pair in _pairs(paired, one, two)}
    for row in rows:
        left -= _covered(row)
    for one, two in combinations(range(len(paired)), 2):
        for (_, first), (_, second) in _pairs(paired, one, two):
            if ((one, first), (two, second)) not in left:
                continue
            widest = _widest(paired, fill, {one: first, two: second}, left)
            left -= {((one, first), (two, second))} if widest is None else _covered(widest)
            rows |= {} if widest is None else {widest: None}
    return tuple(rows)


Pair = tuple[tuple[int, L], tuple[int, L]]


def _pairs(factors: Sequence[Sequence[L]], one: int, two: int) -> Iterator[Pair[L]]:
    return (((one, first), (two, second)) for first, second in product(factors[one], factors[two]))


def _covered(row: Row[L]) -> set[Pair[L]]:
    return set(combinations(enumerate(row), 2))


def _widest(
    factors: Sequence[Sequence[L]], fill: Fill[L], chosen: Chosen[L], left: set[Pair[L]]
) -> Row[L] | None:
    """Return a row with the chosen levels, and of each other factor the level with the most new pairs."""
    row = fill(chosen)
    if row is None:
        return None
    for number, levels in enumerate(factors):
        if number in chosen:
            continue
        news = {level: _new(number, level, chosen, left) for level in levels}
        best = max(levels, key=lambda level: news[level])
        more = {**chosen, number: best}
        filled = fill(more) if news[best] else None
        if filled is not None:
            row, chosen = filled, more
    return row


def _new(number: int, level: L, chosen: Chosen[L], left: set[Pair[L]]) -> int:
    mine = (number, level)
    others = ((other, held) for other, held in chosen.items())
    return sum(((mine, one) if number < one[0] else (one, mine)) in left for one in others)


@cache
def shapes() -> tuple[Shape, ...]:
    """Return the shapes, each trait by itself first; those of hundreds of turns stand beside no other."""
    return covering(FACTORS, _filled, alone=LONG)


def _filled(chosen: Mapping[int, Trait]) -> Shape | None:
    """Return the simplest shape with the chosen traits; ``None`` if they do not go together."""
    row = [chosen.get(number, simplest) for number, simplest in enumerate(BASE)]
    fixed = set(chosen)
    for trait in (T.NAMES, T.REASONING, *OF_CALLS, *CALLING, *NEEDS):
        if trait not in row or not (needed := NEEDS[trait]) or any(one in row for one in needed):
            continue
        free = next((one for one in needed if PLACE[one] not in fixed), None)
        if free is None:
            return None
        row[PLACE[free]] = free
    return tuple(row)
