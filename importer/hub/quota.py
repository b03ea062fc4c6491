"""What the Hub's ``RateLimit`` headers leave this process, by quota."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from threading import Lock

from importer.hub import endpoint

QUOTAS = ("api", "pages", "resolvers")  # the Hub's own names; any other counts as ``other``
LEFT = re.compile(
    r'"(?P<name>[^"]{1,100})"\s*;\s*r\s*=\s*(?P<left>[0-9]{1,9})\s*;\s*t\s*=\s*(?P<seconds>[0-9]{1,9})'
)
_left: dict[str, tuple[int, float]] = {}
_lock = Lock()


def told(headers: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Return quota, requests left and seconds of each window that an answer's headers name."""
    found = LEFT.finditer(headers.get("ratelimit", ""))
    return [(match["name"], int(match["left"]), int(match["seconds"])) for match in found]


def record(url: str, headers: Mapping[str, str]) -> None:
    """Keep what an answer of the endpoint's own host says is left, until its window ends."""
    if not endpoint.may_carry_token(url):
        return
    for named, number, seconds in told(headers):
        name = named if named in QUOTAS else "other"
        with _lock:
            _left[name] = (number, time.monotonic() + seconds)


def left() -> dict[str, int]:
    """Return the requests that are left by quota, of those windows that have not ended."""
    now = time.monotonic()
    with _lock:
        return {name: number for name, (number, until) in sorted(_left.items()) if until > now}
