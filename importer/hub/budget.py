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


def record(url: str, headers: Mapping[str, str]) -> None:
    """Keep what an answer of the endpoint's own host says is left, until its window ends."""
    if not endpoint.may_carry_token(url):
        return
    for match in LEFT.finditer(headers.get("ratelimit", "")):
        name = match["name"] if match["name"] in QUOTAS else "other"
        with _lock:
            _left[name] = (int(match["left"]), time.monotonic() + int(match["seconds"]))


def left() -> dict[str, int]:
    """Return the requests that are left by quota, of those windows that have not ended."""
    now = time.monotonic()
    with _lock:
        return {name: number for name, (number, until) in sorted(_left.items()) if until > now}
