"""Filters of an organisation's models: ``KEY=VALUE``, some applied by the Hub and the others to its list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from importer import config
from importer.errors import Setting, UsageError
from importer.hub import snapshot
from importer.reasons import Reason, ReasonKind

WORD = re.compile(r"[\w][\w. +-]{0,99}", re.ASCII)
SORTS = {"downloads": "downloads", "likes": "likes", "updated": "lastModified", "created": "createdAt"}
LONGEST = 200  # characters of a value
MOST = 10_000_000_000


class FilterReason(ReasonKind):
    """Reasons why a filter cannot be used."""

    FORM = "form", "{text!r} does not have the form KEY=VALUE"
    UNKNOWN = "unknown", "{name!r} is no filter; filters: {known}"
    TWICE = "twice", "{name} is given twice"
    NUMBER = "number", "{name} takes a whole number, not {value!r}"
    DATE = "date", "{name} takes a day such as 2026-01-31, not {value!r}"
    GATED = "gated", "{name} takes yes or no, not {value!r}"
    WORD = "word", "{name} takes one word of the Hub, not {value!r}"
    SORT = "sort", "{name} takes one of {known}, not {value!r}"
    LONG = "long", "the value of {name} has more than {most} characters"


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of one list, by key in their order; ``values`` were checked."""

    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def query(self) -> list[tuple[str, Any]]:
        """Return the part that the Hub applies."""
        names = {"library": "filter", "task": "pipeline_tag"}
        query: list[tuple[str, Any]] = [
            (names[key], value) for key, value in self.values.items() if key in names
        ]
        if "gated" in self.values:
            query.append(("gated", "true" if self.values["gated"] == "yes" else "false"))
        if "sort" in self.values:
            query += [("sort", SORTS[self.values["sort"]]), ("direction", -1)]
        return query

    def admit(self, row: Mapping[str, Any]) -> bool:
        """Return whether an entry of the list passes; those of the Hub's part are checked again."""
        return all(_TESTS[key](row, value) for key, value in self.values.items() if key in _TESTS)


def parse(texts: Iterable[str]) -> Filters:
    """Return the filters of ``KEY=VALUE`` texts.

    Raises UsageError("bad-value").
    """
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key or not value:
            _bad(text, FilterReason.FORM)
        if key not in KEYS:
            _bad(text, FilterReason.UNKNOWN, name=key[:LONGEST], known=KEYS)
        if key in values:
            _bad(text, FilterReason.TWICE, name=key)
        if len(value) > LONGEST:
            _bad(text, FilterReason.LONG, name=key, most=LONGEST)
        kind = _CHECKS[key](value)
        if kind is not None:
            _bad(text, kind, name=key, value=value, known=[*SORTS])
        values[key] = value
    return Filters(values)


def _bad(text: str, kind: FilterReason, **details: object) -> None:
    problem = Reason(kind, text=text[:LONGEST], **details)
    raise UsageError("bad-value", setting=Setting.FILTER, value=text, problem=problem)


def _word(value: str) -> FilterReason | None:
    return None if WORD.fullmatch(value) else FilterReason.WORD


def _number(value: str) -> FilterReason | None:
    return FilterReason.NUMBER if config.number(value, MOST, 0) is None else None


def _date(value: str) -> FilterReason | None:
    return FilterReason.DATE if _time(value) is None else None


def _time(value: object) -> datetime | None:
    """Return a time of ISO 8601; one without a zone is UTC."""
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _any(_value: str) -> FilterReason | None:
    return None


def _gated(value: str) -> FilterReason | None:
    return None if value in {"yes", "no"} else FilterReason.GATED


def _sort(value: str) -> FilterReason | None:
    return None if value in SORTS else FilterReason.SORT


_CHECKS: Mapping[str, Callable[[str], FilterReason | None]] = {
    "library": _word, "task": _word, "name": _any, "family": _any, "downloads": _number, "likes": _number,
    "updated": _date, "gated": _gated, "sort": _sort,
}  # fmt: skip
KEYS = tuple(_CHECKS)


def _at_least(key: str) -> Callable[[Mapping[str, Any], str], bool]:
    return lambda row, value: (snapshot.whole(row.get(key)) or 0) >= int(value)


def _updated(row: Mapping[str, Any], value: str) -> bool:
    at, since = _time(row.get("lastModified")), _time(value)
    return at is not None and since is not None and at >= since


def _family(row: Mapping[str, Any], pattern: str) -> bool:
    """Return whether the model type or an architecture of the config fits the pattern."""
    config = snapshot.mapping(row.get("config"))
    named = [config.get("model_type"), *snapshot.listed(config.get("architectures"))]
    return any(isinstance(n, str) and _fits(n, pattern) for n in named)


def _name(row: Mapping[str, Any], pattern: str) -> bool:
    return _fits(str(row.get("id")).rpartition("/")[2], pattern)


def _fits(text: str, pattern: str) -> bool:
    return fnmatchcase(text.lower(), pattern.lower())


def _library(row: Mapping[str, Any], value: str) -> bool:
    return value in (row.get("library_name"), *snapshot.listed(row.get("tags")))


_TESTS: Mapping[str, Callable[[Mapping[str, Any], str], bool]] = {
    "library": _library,
    "task": lambda row, value: row.get("pipeline_tag") == value,
    "name": _name,
    "family": _family,
    "downloads": _at_least("downloads"),
    "likes": _at_least("likes"),
    "updated": _updated,
    "gated": lambda row, value: bool(row.get("gated")) is (value == "yes"),
}
