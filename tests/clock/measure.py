"""How a reader's CPU time grows with its text; nothing here asks how fast it is.

A pair of runs counts as growth only where it is clear of noise, and is measured again on longer texts, the
least of several runs, before anybody is accused. CPU time of this process is what a busy machine cannot stretch.
"""

from __future__ import annotations

import gc
import math
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLOOR = 0.03  # seconds of CPU under which nothing can be told
LIMIT = 12.0  # seconds of CPU for one text of the first size, on a machine four times as slow as most
LEAST = 1.0  # seconds of CPU that a run on twice the text has, however short the first one was
RATIO = 2.6  # of twice the text; n log n has 2.2, n squared 4
MEMORY = 384 * 1024 * 1024  # bytes beyond what the process has
STATM = Path("/proc/self/statm")


class TooLong(BaseException):
    """A run did not end; no reader catches it."""


@dataclass(frozen=True)
class Growth:
    """What was measured last: characters, seconds for them, seconds for twice as many."""

    size: int
    once: float
    twice: float

    def __str__(self) -> str:
        return f"{self.size:,} characters {self.once:.2f} s, twice as many {self.twice:.2f} s"


def growth(
    read: Callable[[Any], Any], build: Callable[[int], Any], size: int, limit: float = LIMIT
) -> Growth | None:
    """``None`` where time grows no faster than n log n, as far as can be told; else what shows that it does."""
    once = clocked(read, build(size), limit)
    if once < FLOOR:
        return None
    twice = clocked(read, build(2 * size), max(5 * once, LEAST)) if once < math.inf else once
    for _ in range(2):
        if twice <= RATIO * once or twice == math.inf:
            break
        size *= 2
        once = min(twice, clocked(read, build(size), max(2 * twice, LEAST)))
        twice = min(clocked(read, build(2 * size), max(5 * once, LEAST)) for _ in range(2))
    return None if twice <= RATIO * once < math.inf else Growth(size, once, twice)


def noticed(read: Callable[[Any], Any], build: Callable[[int], Any]) -> int:
    """The first size, by doubling, that takes clearly more than ``FLOOR`` on this machine, however fast it is."""
    size = 1000
    while clocked(read, build(size), LIMIT) < 2 * FLOOR:
        size *= 2
    return size


def clocked(read: Callable[[Any], Any], given: Any, limit: float) -> float:
    """Seconds of CPU; infinite where the run had to be ended. What a reader raises is its answer.

    Raises MemoryError past the cap, where the system can set one.
    """
    with _capped(), _timed(limit):
        start = time.process_time()
        try:
            read(given)
        except TooLong:
            return math.inf
        except (MemoryError, AttributeError, NameError, ImportError):  # the last ones: nothing was read
            raise
        except Exception:  # how a reader refuses is for its own tests
            pass
        return time.process_time() - start


@contextmanager
def _timed(limit: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong

    gc.disable()
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        gc.enable()


@contextmanager
def _capped() -> Iterator[None]:
    if not STATM.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    held = int(STATM.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
