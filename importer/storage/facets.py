"""Counts of documents: in all, and by each value of a facet under the other filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Text, cast, func, literal, null, select, union_all

from importer.storage import change_counter
from importer.storage.document_filters import COLUMNS, WORDED, Filters, conditions, faceted, fits, unfaceted
from importer.storage.tables import configs

T = configs.c
MAX_COUNTS = 500  # filters whose counts are kept
FACETS = tuple(name for name in COLUMNS if name != "tag")
TOTAL = "total "  # before the name of a number that is of no facet
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
        mark = change_counter.current(connection)
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
    """Count each facet under the filters of all others; the documents of a search are read once."""
    rows = select(*(column.label(name) for name, column in COLUMNS.items()), T.memory, T.devices)
    found = rows.where(*unfaceted(filters)).cte("found").prefix_with("MATERIALIZED")
    columns = {name: found.c[name] for name in COLUMNS}
    fitting = None if filters.budget is None else fits(filters.budget, found.c.memory, found.c.devices)
    within = () if fitting is None else (fitting,)
    counted = [
        select(literal(name), columns[name], func.count())
        .where(*faceted(filters, columns, name), *within)
        .group_by(columns[name])
        for name in FACETS
    ]
    chosen = [*faceted(filters, columns)]
    totals: dict[str, list[ColumnElement[bool]]] = {
        "total": [*chosen, *within], "attention": [*chosen, *within, columns["attention"].is_not(None)],
    }  # fmt: skip
    if budget is not None:
        totals["yes"] = [*chosen, fits(budget, found.c.memory, found.c.devices)]
        totals["unknown"] = [*chosen, found.c.memory.is_(None)]
        totals["all"] = chosen
    of_totals = [
        select(literal(f"{TOTAL}{name}"), cast(null(), Text), func.count()).select_from(found).where(*where)
        for name, where in totals.items()
    ]
    values: dict[str, Counter[str | None]] = {name: Counter() for name in FACETS}
    numbers: dict[str, int] = {}
    for name, value, number in connection.execute(union_all(*counted, *of_totals)):
        if name.startswith(TOTAL):
            numbers[name.removeprefix(TOTAL)] = number
            continue
        for word in (value.split() if value else (None,)) if name in WORDED else (value,):
            values[name][word] += number
    by_number = {name: dict(sorted(counts.items(), key=_most)) for name, counts in values.items()}
    return Facets(
        numbers["total"], total(connection, Filters()), numbers["attention"], by_number,
        None if budget is None else {
            "yes": numbers["yes"], "no": numbers["all"] - numbers["yes"] - numbers["unknown"],
            "unknown": numbers["unknown"],
        },
    )  # fmt: skip


def _most(pair: tuple[str | None, int]) -> tuple[int, str]:
    return -pair[1], pair[0] or ""
