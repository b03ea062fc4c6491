"""A long run waits when the Hub says that its limit is reached, instead of failing one line after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from importer.errors import HubError

Result = TypeVar("Result")
LONGEST = 900.0  # seconds a server may ask for; the Hub's windows are 300 s
TRIES = 5


class Pace:
    """Shared by the threads of a run: who is told to wait makes all wait."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._lock = Lock()
        self._until = 0.0

    def keep(self, work: Callable[[], Result]) -> Result:
        """``work``, again after the time that the Hub asks for; raises what it raises otherwise."""
        for left in reversed(range(TRIES)):
            time.sleep(max(0.0, self._until - time.monotonic()))
            try:
                return work()
            except HubError as error:
                seconds = error.details.get("seconds")
                if not left or not isinstance(seconds, float) or seconds > LONGEST:
                    raise
                self._progress(f"the Hub asks to wait {seconds:.0f} s")
                with self._lock:
                    self._until = max(self._until, time.monotonic() + seconds)
        raise AssertionError("the last try returns or raises")
