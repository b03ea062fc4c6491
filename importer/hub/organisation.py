"""The Hub's list of an organisation's models: pages of entries, each with the fields that filters read.

The list has commits and the names of files, but neither their sizes nor their hashes; those come with the
one call for each repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from importer import config
from importer.errors import HubError, Setting, UsageError
from importer.hub import client, endpoint, snapshot
from importer.hub.organisation_filters import Filters
from importer.hub.paging import Paging, following
from importer.hub.reference import COMMIT, STEP, is_id
from importer.reasons import Reason, ReasonKind

FIELDS = (
    "sha", "siblings", "config", "gated", "private", "disabled", "pipeline_tag", "library_name", "tags",
    "downloads", "likes", "lastModified",
)  # fmt: skip
PAGE = 200  # entries of a page; their configs hold chat templates
LONGEST = 32 * 1024 * 1024  # bytes of a page
MOST_VALUES = 4_000_000  # of the JSON, counted before the parse
MOST_NAMES = 2000  # files of one entry that are looked at
WEIGHTS = frozenset({"safetensors", "bin", "pt", "pth", "npz"})


class ListReason(ReasonKind):
    """Reasons why a page of the list cannot be used."""

    LONG = "long", "one entry is longer than {limit:,} bytes"
    VALUES = "values", "it holds more than {limit:,} values"
    NO_LIST = "no-list", "it is no JSON list"
    NO_NAME = "no-name", "{name!r} is not the name of an organisation or a user on the Hub"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
            raise _unusable(url, Reason(ListReason.LONG, limit=LONGEST)) from None
        return _page(smaller, filters, paging)
    if answer.status == 401:
        raise HubError("bad-token")
    if answer.status != 200:
        raise HubError("server", status=answer.status, url=endpoint.plain(url), tries=1)
    if sum(answer.body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise _unusable(url, Reason(ListReason.VALUES, limit=MOST_VALUES))
    try:
        rows = json.loads(answer.body.decode())
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise _unusable(url, Reason(ListReason.NO_LIST))
    named = {name: row for row in rows if isinstance(row, Mapping) and is_id(name := str(row.get("id")))}
    target = following(url, answer.headers)
    new = paging.came(len(answer.body), named)
    kept = (_entry(row) for name, row in named.items() if name in new and filters.admit(row))
    return Page(tuple(one for one in kept if one is not None), target)


def _entry(row: Mapping[str, Any]) -> Entry | None:
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


def _unusable(url: str, problem: Reason) -> HubError:
    return HubError("bad-answer", url=endpoint.plain(url), problem=problem)
