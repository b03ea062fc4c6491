"""How often somebody may ask: a bucket for each caller that fills evenly, so that a pause pays."""

from __future__ import annotations

import math
import time
from threading import Lock

from importer.errors import ServiceError

MINUTE = 60.0
MOST = 10_000  # callers that are remembered; a full bucket need not be


class Limiter:
    """So many requests a minute for each caller, all at once or one by one; 0 sets no limit."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when

    def count(self, who: str) -> None:
        """Raises ServiceError("too-many") with the seconds until the next one."""
        if not self._most:
            return
        now, each = time.monotonic(), MINUTE / self._most
        with self._lock:
            left = self._now(who, now)
            if left < 1:
                raise ServiceError("too-many", seconds=math.ceil((1 - left) * each))
            self._left.pop(who, None)  # the one that asked last stands last
            self._left[who] = (left - 1, now)
            while len(self._left) > MOST:
                del self._left[next(iter(self._left))]

    def _now(self, who: str, now: float) -> float:
        left, at = self._left.get(who, (float(self._most), now))
        return min(float(self._most), left + (now - at) * self._most / MINUTE)
