"""The pages of one list of the Hub: the next one, and the bound over all of them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from importer.errors import HubError
from importer.frozen import frozen
from importer.hub import endpoint
from importer.reasons import Reason, ReasonKind

NEXT = re.compile(r'<([^<>]{1,4096})>\s*;\s*rel\s*=\s*"?next"?')


class PagingReason(ReasonKind):
    """Reasons why a list is left before its last page."""

    BEYOND = "the list repeats a page, or has more pages or takes longer than importer reads"


@frozen
class Bounds:
    """What all pages of a list may take together; ``seconds`` with the waits for the Hub's rate limit."""

    pages: int = 5_000
    seconds: float = 4 * 3600.0


BOUNDS = Bounds()


class Paging:
    """The pages of one list so far."""

    def __init__(self) -> None:
        self._urls: set[int] = set()
        self._began = time.monotonic()

    def ask(self, url: str) -> None:
        """Count the request for a page.

        Raises HubError("bad-answer") for a page that was asked for, and where the pages so far are too many.
        """
        asked = len(self._urls)
        self._urls.add(hash(url))
        late = time.monotonic() - self._began > BOUNDS.seconds
        if asked == len(self._urls) or asked >= BOUNDS.pages or late:
            raise HubError("bad-answer", url=endpoint.plain(url), problem=Reason(PagingReason.BEYOND))


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
