"""The bound over all pages of one list of the Hub: an organisation's models, and the files of a commit."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from importer.errors import HubError
from importer.hub import endpoint
from importer.reasons import Reason, ReasonKind

NEXT = re.compile(r'<([^<>]{1,4096})>\s*;\s*rel\s*=\s*"?next"?')


class PagingReason(ReasonKind):
    """Reasons why a list is left before its last page."""

    LOOP = "loop", "this page of the list came before"
    IDLE = "idle", "more than {limit:,} pages of the list have nothing new"
    PAGES = "pages", "the list has more than {limit:,} pages"
    BYTES = "bytes", "the list has more than {limit:,} bytes"
    SECONDS = "seconds", "the list takes more than {limit:,.0f} seconds"
    ENTRIES = "entries", "the list has more than {limit:,} entries"


@dataclass(frozen=True, slots=True)
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
        raise HubError("refused-host", url=endpoint.plain(target))
    return target
