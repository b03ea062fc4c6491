"""Counts of documents: in all, and by each value of a facet under the other filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select

from importer.storage import marks
from importer.storage.document_filters import COLUMNS, WORDED, Filters, conditions, fits
from importer.storage.tables import configs

T = configs.c
MAX_COUNTS = 500  # filters whose counts are kept
FACETS = tuple(name for name in COLUMNS if name != "tag")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Facets:
    """How many documents each value of a facet would leave; ``None`` is the value of those without one.

    ``fits`` counts by whether a document fits the device: yes, no, and unknown; ``None`` without a device.
    """

    total: int
    documents: int
    attention: int
    values: Mapping[str, Mapping[str | None, int]]
    fits: Mapping[str, int] | None


class CountCache:
    """How many documents filters leave: counted again only after a document has changed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[Hashable, tuple[int, Any]] = {}

    def count(self, connection: Connection, filters: Filters) -> int:
        """Return the number of documents that a list has in all."""
        return self._get(filters.key, connection, lambda: total(connection, filters))

    def facets(self, connection: Connection, filters: Filters, budget: int | None) -> Facets:
        """Return the counts of every facet; ``budget`` is that of the device."""
        key = ("facets", filters.key, budget)
        return self._get(key, connection, lambda: facets(connection, filters, budget))

    def _get(self, key: Hashable, connection: Connection, count: Callable[[], R]) -> R:
        mark = marks.current(connection)
        with self._lock:
            known = self._counts.get(key)
        if known is not None and known[0] == mark:
            return known[1]  # type: ignore[no-any-return]
        found = count()
        with self._lock:
            self._counts.pop(key, None)
            self._counts[key] = (mark, found)
            while len(self._counts) > MAX_COUNTS:
                del self._counts[next(iter(self._counts))]
        return found


def total(connection: Connection, filters: Filters) -> int:
    """Return how many documents the filters leave."""
    return connection.execute(
        select(func.count()).select_from(configs).where(*conditions(filters))
    ).scalar_one()


def facets(connection: Connection, filters: Filters, budget: int | None) -> Facets:
    """Count each facet under the filters of all others."""
    values = {name: _counts(connection, name, filters) for name in FACETS}
    needing = replace(filters, attention=("any",))
    return Facets(
        total(connection, filters), total(connection, Filters()), total(connection, needing), values,
        None if budget is None else _fitting(connection, filters, budget),
    )  # fmt: skip


def _counts(connection: Connection, name: str, filters: Filters) -> dict[str | None, int]:
    column = COLUMNS[name]
    where = conditions(replace(filters, **dict[str, Any]({name: ()})))
    rows = connection.execute(select(column, func.count()).where(*where).group_by(column)).all()
    if name not in WORDED:
        return dict(sorted(((value, n) for value, n in rows), key=_most))
    counts: Counter[str | None] = Counter()
    for value, number in rows:
        for word in value.split() if value else (None,):
            counts[word] += number
    return dict(sorted(counts.items(), key=_most))


def _most(pair: tuple[str | None, int]) -> tuple[int, str]:
    return -pair[1], pair[0] or ""


def _fitting(connection: Connection, filters: Filters, budget: int) -> dict[str, int]:
    others = replace(filters, budget=None)
    unknown = select(func.count()).select_from(configs).where(*conditions(others), T.memory.is_(None))
    fitting = select(func.count()).select_from(configs).where(*conditions(others), fits(budget))
    yes, none = connection.execute(fitting).scalar_one(), connection.execute(unknown).scalar_one()
    return {"yes": yes, "no": total(connection, others) - yes - none, "unknown": none}
