"""Limits that a child sets on itself: processor time for each call, memory, and no new files or processes."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

AGAIN = 0.1  # seconds until the timer raises again, where code has swallowed the first exception
GRACE = 2  # seconds of processor time for an uninterruptible step


class OutOfTimeError(BaseException):
    """Raised by the timer; no ``except Exception`` catches it."""


def confine(memory: int) -> None:
    """Forbid new files, sockets and processes for good; ``memory`` is bytes of address space."""
    limits = {"RLIMIT_AS": memory, "RLIMIT_NOFILE": 0, "RLIMIT_NPROC": 0, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
    for name, value in limits.items():
        with suppress(ValueError, OSError):  # macOS knows the names and refuses some values
            resource.setrlimit(getattr(resource, name), (value, value))
    signal.signal(signal.SIGPROF, _out_of_time)


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError


@contextmanager
def processor(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError after ``seconds`` of processor time, or at an earlier enclosing limit."""
    left, _ = signal.getitimer(signal.ITIMER_PROF)
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, min(seconds, left) if left else seconds, AGAIN)
    try:
        yield
    finally:
        spent = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, max(left - spent, 1e-6) if left else 0, AGAIN if left else 0)


def deadline(seconds: float) -> None:
    """Make the kernel end the process (SIGXCPU) where an uninterruptible step exceeds ``seconds`` too far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    with suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        soft = int(used.ru_utime + used.ru_stime + seconds + GRACE) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
