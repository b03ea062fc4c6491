"""Which documents a list has, and in which order: filters and sorts as conditions of a query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, case, cast, func, or_

from importer.storage.cards import LARGEST
from importer.storage.tables import configs

T = configs.c
ABSENT = "none"  # in a filter: documents without a value
ANY = "any"  # of attention: documents with a reason of any kind
STATES = ("draft", "stale", "rejected", "approved", "validated", "ready", "published")
WORDED = ("modality", "attention", "tag")  # columns of several words
COLUMNS: Mapping[str, ColumnElement[Any]] = {
    "state": T.state, "review": T.review, "validation": T.validation, "backend": T.backend,
    "family": T.family, "kind": T.kind, "modality": T.modalities, "tool_parser": T.tool_parser,
    "reasoning_parser": T.reasoning_parser, "license": T.license, "quantization": T.quantization,
    "size": T.size, "attention": T.attention, "tag": T.tags,
}  # fmt: skip
NUMBERS = ("weights", "memory", "context", "parameters", "findings")
PRESENT = ("updated_at", "created_at")  # times that each document has
Value = str | int


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents a list has; ``q`` has words that all are in its name, model, description or tags.

    Each sequence selects documents with one of its values; ``none`` stands for no value, and ``any`` of
    attention for each kind. ``released`` selects documents with a release that is served, or those without.
    ``budget`` selects those that fit into so many bytes on all devices together.
    """

    state: Sequence[str] = ()
    family: Sequence[str] = ()
    backend: Sequence[str] = ()
    q: str | None = None
    released: bool | None = None
    review: Sequence[str] = ()
    validation: Sequence[str] = ()
    updated_since: str | None = None
    model: str | None = None
    kind: Sequence[str] = ()
    modality: Sequence[str] = ()
    tool_parser: Sequence[str] = ()
    reasoning_parser: Sequence[str] = ()
    license: Sequence[str] = ()
    quantization: Sequence[str] = ()
    size: Sequence[str] = ()
    attention: Sequence[str] = ()
    tag: Sequence[str] = ()
    budget: int | None = None

    @property
    def key(self) -> Hashable:
        """Return the filters for a cache."""
        values = (getattr(self, one.name) for one in fields(self))
        return tuple(tuple(value) if isinstance(value, list | tuple) else value for value in values)


def conditions(filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of documents that are there and that the filters leave."""
    yield from unfaceted(filters)
    yield from faceted(filters, COLUMNS)
    if filters.budget is not None:
        yield fits(filters.budget, T.memory, T.devices)


def unfaceted(filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions that no facet has: of documents that are there, and of a search."""
    yield T.deleted_at.is_(None)
    if filters.model is not None:
        yield T.model == filters.model
    if filters.updated_since is not None:
        yield T.updated_at >= filters.updated_since
    if filters.released is not None:
        yield T.release.is_not(None) if filters.released else T.release.is_(None)
    for word in (filters.q or "").lower().split():
        yield T.search.contains(word, autoescape=True)


def faceted(
    filters: Filters, columns: Mapping[str, ColumnElement[Any]], without: str | None = None
) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of facets, except that of one, for columns by the names of facets."""
    for name, column in columns.items():
        if name != without and (chosen := getattr(filters, name)):
            yield or_(*(_has(name, column, value) for value in chosen))


def fits(budget: int, memory: ColumnElement[Any], devices: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition of documents whose estimate on all their devices is known and within a budget."""
    whole = cast(memory, BigInteger) * func.coalesce(devices, 1)
    return and_(memory.is_not(None), whole <= budget)


def _has(name: str, column: ColumnElement[Any], value: str) -> ColumnElement[bool]:
    if value == ABSENT:
        return column.is_(None)
    if name == "attention" and value == ANY:
        return column.is_not(None)
    return column.contains(f" {value} ", autoescape=True) if name in WORDED else column == value


@dataclass(frozen=True, slots=True)
class Order:
    """One sort: the expression that rows are ordered by before their name, and its value of a row."""

    column: ColumnElement[Any]
    value: Callable[[Any], Value]


def order(sort: str) -> Order | None:
    """Return the order of a sort without its ``-``; ``None`` for the name alone.

    Documents without a figure come last in both directions.
    """
    name, descends = sort.removeprefix("-"), sort.startswith("-")
    if name == "name":
        return None
    if name == "state":
        ranks = {state: rank for rank, state in enumerate(STATES)}
        return Order(
            case(ranks, value=T.state, else_=len(STATES)), lambda row: ranks.get(row.state, len(STATES))
        )
    if name == "attention":
        return Order(T.urgency, lambda row: int(row.urgency))  # in the order of an index, as the times are
    if name in PRESENT:
        return Order(T[name], lambda row: str(getattr(row, name)))
    if name in NUMBERS:
        absent = -1 if descends else LARGEST
        return Order(func.coalesce(T[name], absent), lambda row: _number(getattr(row, name), absent))
    return Order(func.coalesce(T[name], ""), lambda row: str(getattr(row, name) or ""))


def _number(value: int | None, absent: int) -> int:
    return absent if value is None else value


def whole(sort: str) -> bool:
    """Return whether a sort is by numbers."""
    return sort.removeprefix("-") in (*NUMBERS, "state", "attention")
