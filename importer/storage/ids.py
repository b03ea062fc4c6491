"""Ids that sort by the time they were made: UUIDs of version 7."""

from __future__ import annotations

import secrets
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def fresh() -> str:
    """Return a new id; in one process each sorts behind all before it."""
    global _last  # noqa: PLW0603 - the clock may stand still between two calls
    with _lock:
        # 48 bits of milliseconds and 12 bits of their fractions, as RFC 9562 allows.
        ticks = time.time_ns() * 4096 // 1_000_000
        _last = max(_last + 1, ticks)
        ticks = _last
    bits = (ticks >> 12) << 80 | 7 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=bits))
