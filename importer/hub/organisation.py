"""The Hub's list of an organisation's models: pages, their bound, filters of the entries; and its search."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, field, fields
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from importer import config
from importer.errors import HubError, Setting, UsageError
from importer.frozen import frozen
from importer.hub import client, endpoint, snapshot
from importer.hub.reference import COMMIT, STEP, is_id
from importer.reasons import Reason, ReasonKind

WORD = re.compile(r"[\w][\w. +-]{0,99}", re.ASCII)
SORTS = {"downloads": "downloads", "likes": "likes", "updated": "lastModified", "created": "createdAt"}
ORGANISATION_FILTERS_LONGEST = 200  # characters of a value
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


@frozen
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

    def admit(self, row: Mapping[str, object]) -> bool:
        """Return whether an entry of the list passes; those of the Hub's part are checked again."""
        return all(_TESTS[key](row, value) for key, value in self.values.items() if key in _TESTS)


def parse_filters(texts: Iterable[str]) -> Filters:
    """Return the filters of ``KEY=VALUE`` texts.

    Raises UsageError("bad-value").
    """
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key or not value:
            _bad(text, FilterReason.FORM)
        if key not in KEYS:
            _bad(text, FilterReason.UNKNOWN, name=key[:ORGANISATION_FILTERS_LONGEST], known=KEYS)
        if key in values:
            _bad(text, FilterReason.TWICE, name=key)
        if len(value) > ORGANISATION_FILTERS_LONGEST:
            _bad(text, FilterReason.LONG, name=key, most=ORGANISATION_FILTERS_LONGEST)
        kind = _CHECKS[key](value)
        if kind is not None:
            _bad(text, kind, name=key, value=value, known=[*SORTS])
        values[key] = value
    return Filters(values)


def _bad(text: str, kind: FilterReason, **details: object) -> None:
    problem = Reason(kind, text=text[:ORGANISATION_FILTERS_LONGEST], **details)
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


def _at_least(key: str) -> Callable[[Mapping[str, object], str], bool]:
    return lambda row, value: (snapshot.whole(row.get(key)) or 0) >= int(value)


def _updated(row: Mapping[str, object], value: str) -> bool:
    at, since = _time(row.get("lastModified")), _time(value)
    return at is not None and since is not None and at >= since


def _family(row: Mapping[str, object], pattern: str) -> bool:
    """Return whether the model type or an architecture of the config fits the pattern."""
    config = snapshot.mapping(row.get("config"))
    named = [config.get("model_type"), *snapshot.listed(config.get("architectures"))]
    return any(isinstance(n, str) and _fits(n, pattern) for n in named)


def _name(row: Mapping[str, object], pattern: str) -> bool:
    return _fits(str(row.get("id")).rpartition("/")[2], pattern)


def _fits(text: str, pattern: str) -> bool:
    return fnmatchcase(text.lower(), pattern.lower())


def _library(row: Mapping[str, object], value: str) -> bool:
    return value in (row.get("library_name"), *snapshot.listed(row.get("tags")))


_TESTS: Mapping[str, Callable[[Mapping[str, object], str], bool]] = {
    "library": _library,
    "task": lambda row, value: row.get("pipeline_tag") == value,
    "name": _name,
    "family": _family,
    "downloads": _at_least("downloads"),
    "likes": _at_least("likes"),
    "updated": _updated,
    "gated": lambda row, value: bool(row.get("gated")) is (value == "yes"),
}


NEXT = re.compile(r'<([^<>]{1,4096})>\s*;\s*rel\s*=\s*"?next"?')


class PagingReason(ReasonKind):
    """Reasons why a list is left before its last page."""

    LOOP = "loop", "this page of the list came before"
    IDLE = "idle", "more than {limit:,} pages of the list have nothing new"
    PAGES = "pages", "the list has more than {limit:,} pages"
    BYTES = "bytes", "the list has more than {limit:,} bytes"
    SECONDS = "seconds", "the list takes more than {limit:,.0f} seconds"
    ENTRIES = "entries", "the list has more than {limit:,} entries"


@frozen
class Bounds:
    """What all pages of a list may take together; the largest organisations have 300 pages of 200 entries.

    ``idle``     pages one behind the other without a new entry.
    ``seconds``  waits for the Hub's rate limit included.
    """

    pages: int = 5_000
    entries: int = 500_000
    bytes: int = 8 * 2**30
    seconds: float = 4 * 3600.0
    idle: int = 10


BOUNDS = Bounds()


class Paging:
    """The pages of one list so far."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or BOUNDS
        self._urls: set[int] = set()
        self._entries: set[int] = set()
        self._began = time.monotonic()
        self._bytes = self._idle = 0

    def ask(self, url: str) -> None:
        """Count the request for a page.

        Raises HubError("bad-answer") for a page that was asked for, and where the pages so far are too much.
        """
        most, asked = self._bounds, len(self._urls)
        self._urls.add(hash(url))
        spent = time.monotonic() - self._began
        for kind, value, limit in (
            (PagingReason.LOOP, asked, len(self._urls) - 1),
            (PagingReason.IDLE, self._idle, most.idle - 1),
            (PagingReason.PAGES, asked, most.pages - 1),
            (PagingReason.ENTRIES, len(self._entries), most.entries),
            (PagingReason.BYTES, self._bytes, most.bytes),
            (PagingReason.SECONDS, spent, most.seconds),
        ):
            if value > limit:
                raise HubError("bad-answer", url=endpoint.plain(url), problem=Reason(kind, limit=limit))

    def came(self, size: int, names: Iterable[str]) -> set[str]:
        """Count the bytes and the entries of a page; return the names that no page had before."""
        new = {name for name in names if hash(name) not in self._entries}
        self._entries.update(map(hash, new))
        self._bytes += size
        self._idle = 0 if new else self._idle + 1
        return new


def following(url: str, headers: Mapping[str, str]) -> str | None:
    """Return the URL of the next page, one of the endpoint's own; names of headers are in lower case.

    Raises HubError("refused-host").
    """
    found = NEXT.search(headers.get("link", ""))
    if found is None:
        return None
    target = endpoint.redirected(url, found[1])
    if not endpoint.may_carry_token(target):
        raise endpoint.refused(url, target)
    return target


FIELDS = (
    "sha", "siblings", "config", "gated", "private", "disabled", "pipeline_tag", "library_name", "tags",
    "downloads", "likes", "lastModified",
)  # fmt: skip
PAGE = 200  # entries of a page; their configs hold chat templates
LONGEST = 32 * 1024 * 1024  # bytes of a page
LONGEST_SEARCH = 1024 * 1024  # bytes of a search's answer
MOST_VALUES = 4_000_000  # of the JSON, counted before the parse
MOST_NAMES = 2000  # files of one entry that are looked at
WEIGHTS = frozenset({"safetensors", "bin", "pt", "pth", "npz"})


class ListReason(ReasonKind):
    """Reasons why a page of the list cannot be used."""

    LONG = "long", "it is longer than {limit:,} bytes"
    VALUES = "values", "it holds more than {limit:,} values"
    NO_LIST = "no-list", "it is no JSON list"
    NO_NAME = "no-name", "{name!r} is not the name of an organisation or a user on the Hub"


@frozen
class Entry:
    """A listed repository.

    ``commit``  of ``main``; ``None`` where the list names none.
    ``gguf``    whether its only weights are GGUF files.
    """

    repo: str
    commit: str | None
    gguf: bool = False
    gated: bool = False
    private: bool = False

    def to_json(self) -> list[Any]:
        """Return the entry as a list of its fields."""
        return [*asdict(self).values()]

    @classmethod
    def from_json(cls, data: list[Any]) -> Self:
        """Return the entry that ``to_json`` gave; raises TypeError and ValueError for another list."""
        return cls(**dict(zip((f.name for f in fields(cls)), data, strict=True)))


@frozen
class Page:
    """The entries of one page that pass the filters, and the URL of the next page."""

    entries: tuple[Entry, ...]
    following: str | None


def check_name(name: str) -> str:
    """Return the name of an organisation or a user.

    Raises UsageError("bad-value").
    """
    if not STEP.fullmatch(name):
        problem = Reason(ListReason.NO_NAME, name=name[:100])
        raise UsageError("bad-value", setting=Setting.ORGANISATION, value=name, problem=problem)
    return name


def first(name: str, filters: Filters) -> str:
    """Return the URL of the first page of an organisation's models."""
    query = [("author", check_name(name)), *filters.query, ("limit", PAGE)]
    query += [("expand[]", one) for one in FIELDS]
    return f"{client.check_endpoint()}/api/models?{urlencode(query)}"


def pages(url: str, filters: Filters) -> Iterator[Page]:
    """Yield the pages from this one on; each ``following`` is where a later call may go on.

    Raises HubError.
    """
    paging = Paging()
    left: str | None = url
    while left is not None:
        page = _page(left, filters, paging)
        yield page
        left = page.following


def _page(url: str, filters: Filters, paging: Paging) -> Page:
    """Return a page without what earlier ones have; one that is too long is asked for in tenths."""
    paging.ask(url)
    try:
        answer = client.get(url, limit=LONGEST)
    except client.TooLarge:
        smaller = _smaller(url)
        if smaller is None:
            raise client.unusable(url, Reason(ListReason.LONG, limit=LONGEST)) from None
        return _page(smaller, filters, paging)
    named = _rows(url, answer)
    target = following(url, answer.headers)
    new = paging.came(len(answer.body), named)
    kept = (_entry(row) for name, row in named.items() if name in new and filters.admit(row))
    return Page(tuple(one for one in kept if one is not None), target)


def _rows(url: str, answer: client.HubResponse) -> dict[str, Mapping[str, object]]:
    """Return the rows of a list by their ids; raises HubError for an answer that is no list."""
    if answer.status == 401:
        raise HubError("bad-token", said=answer.said)
    if answer.status != 200:
        raise HubError("server", status=answer.status, url=endpoint.plain(url), tries=1, said=answer.said)
    if sum(answer.body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise client.unusable(url, Reason(ListReason.VALUES, limit=MOST_VALUES))
    try:
        rows = json.loads(answer.body.decode())
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise client.unusable(url, Reason(ListReason.NO_LIST))
    return {name: row for row in rows if isinstance(row, Mapping) and is_id(name := str(row.get("id")))}


@frozen
class Hit:
    """A public repository that a search found."""

    repo: str
    downloads: int | None
    likes: int | None
    gated: bool
    task: str | None


def search(text: str, limit: int) -> list[Hit]:
    """Return the public models that the Hub finds for a text, the most downloaded first; one request.

    A private repository is left out: the token is the server's, and the text another person's.
    Raises HubError.
    """
    query = [("search", text), ("sort", SORTS["downloads"]), ("direction", -1), ("limit", limit)]
    query += [("expand[]", one) for one in ("downloads", "gated", "likes", "pipeline_tag", "private")]
    url = f"{client.check_endpoint()}/api/models?{urlencode(query)}"
    try:
        answer = client.get(url, limit=LONGEST_SEARCH)
    except client.TooLarge:
        raise client.unusable(url, Reason(ListReason.LONG, limit=LONGEST_SEARCH)) from None
    return [
        Hit(
            name,
            snapshot.whole(row.get("downloads")),
            snapshot.whole(row.get("likes")),
            bool(row.get("gated")),
            snapshot.text(row.get("pipeline_tag")),
        )
        for name, row in [*_rows(url, answer).items()][:limit]
        if row.get("private") is not True
    ]


def _entry(row: Mapping[str, object]) -> Entry | None:
    """Return an entry; ``None`` without a valid id."""
    name, commit = row.get("id"), row.get("sha")
    if not (isinstance(name, str) and is_id(name)) or row.get("disabled") is True:
        return None
    paths = [snapshot.mapping(one).get("rfilename") for one in snapshot.listed(row.get("siblings"))]
    endings = {p.rpartition(".")[2].lower() for p in paths[:MOST_NAMES] if isinstance(p, str)}
    return Entry(
        name,
        commit if isinstance(commit, str) and COMMIT.fullmatch(commit) else None,
        gguf="gguf" in endings and not endings & WEIGHTS,
        gated=bool(row.get("gated")),
        private=row.get("private") is True,
    )


def _smaller(url: str) -> str | None:
    """Return the URL with a tenth of the entries a page; ``None`` where a page has one."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query)
    most = next((n for k, v in query if k == "limit" and (n := config.number(v, PAGE)) is not None), PAGE)
    if most <= 1:
        return None
    fewer = [(k, v) for k, v in query if k != "limit"] + [("limit", str(max(1, most // 10)))]
    return urlunsplit(parts._replace(query=urlencode(fewer)))
