"""The Hub's rate limits as its headers tell them: requests wait for the next window before they are refused.

A budget is shared by the threads of a process. ``under`` sets it for the requests of one thread, and of those
that ``threads.side_by_side`` starts for it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar
from urllib.parse import urlsplit

from importer.errors import HubError
from importer.progress import Progress, silent

LEFT = re.compile(
    r'"(?P<name>[^"]{1,100})"\s*;\s*r\s*=\s*(?P<left>[0-9]{1,9})\s*;\s*t\s*=\s*(?P<seconds>[0-9]{1,9})'
)


def quotas(headers: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Return quota, requests left and seconds of each window that an answer's headers name."""
    found = LEFT.finditer(headers.get("ratelimit", ""))
    return [(match["name"], int(match["left"]), int(match["seconds"])) for match in found]


LONGEST_PAUSE = 900.0  # seconds that a server may demand; the Hub's windows are 300 s
TRIES = 5  # of one request that is refused in each window
LOOK = 1.0  # seconds between two looks whether the waiting work was stopped
Result = TypeVar("Result")


@dataclass(slots=True)
class _Window:
    """One quota: ``left`` requests until ``reset``; ``None`` where it is not known."""

    left: int | None = None
    reset: float = 0.0
    flying: int = 0


class Budget:
    """The requests that the Hub still grants to this process; for several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: dict[str, _Window] = {}

    def spend(self, url: str, work: Callable[[], Result], progress: Progress = silent) -> Result:
        """Return the result of ``work``, which sends one request, once the Hub's window has room for it.

        Raises the errors of ``work``: a refusal without a pause or with a too long one, and the last one.
        """
        for left in reversed(range(TRIES)):
            self._admit(url, progress)
            try:
                return work()
            except HubError as error:
                seconds = error.details.get("seconds")
                if not left or not isinstance(seconds, float) or seconds > LONGEST_PAUSE:
                    raise
                self._refused(url, seconds)
            finally:
                self._landed(url)
        raise AssertionError("the last try returns or raises")

    def heard(self, url: str, headers: Mapping[str, str]) -> None:
        """Take the rest of a window from the headers of a response, their names in lower case."""
        told = [(rest, seconds) for _, rest, seconds in quotas(headers)]
        with self._lock:
            window = self._window(url)
            if not told:
                window.left = None if window.left == 0 and window.reset <= time.monotonic() else window.left
                return
            rest, seconds = min(told)
            reset, left = time.monotonic() + min(seconds, LONGEST_PAUSE), max(0, rest - window.flying + 1)
            same = window.left is not None and abs(window.reset - reset) < 2 * LOOK
            window.left = min(left, window.left) if same and window.left is not None else left
            window.reset = reset

    def _admit(self, url: str, progress: Progress) -> None:
        """Wait until the window has room, and take it."""
        while (pause := self._pause(url)) > 0:
            progress(f"the Hub asks to wait {pause:.0f} s")
            time.sleep(min(pause, LOOK))

    def _pause(self, url: str) -> float:
        """Return the seconds to wait; where they are none, the request is counted as sent."""
        with self._lock:
            window, now = self._window(url), time.monotonic()
            if window.left == 0 and window.reset <= now:  # one request finds out what the next window grants
                window.left, window.reset = 1, now + LOOK
            if window.left == 0:
                return max(window.reset - now, 0.001)
            if window.left is not None:
                window.left -= 1
            window.flying += 1
            return 0.0

    def _refused(self, url: str, seconds: float) -> None:
        with self._lock:
            window = self._window(url)
            window.left, window.reset = 0, max(window.reset, time.monotonic() + seconds)

    def _landed(self, url: str) -> None:
        with self._lock:
            self._window(url).flying -= 1

    def _window(self, url: str) -> _Window:
        """Return the window of a URL: the Hub counts calls of its API apart from files."""
        kind = "api" if urlsplit(url).path.startswith("/api/") else "files"
        return self._windows.setdefault(kind, _Window())


_current: ContextVar[tuple[Budget, Progress] | None] = ContextVar("budget", default=None)


@contextmanager
def under(budget: Budget, progress: Progress = silent) -> Iterator[None]:
    """Let the requests of this thread wait for ``budget``; ``progress`` may stop them while they wait."""
    token = _current.set((budget, progress))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> tuple[Budget, Progress] | None:
    """Return the budget of this thread's requests, and the progress of its work."""
    return _current.get()
