"""Limits that a busy machine does not reach, processor time, and the Python that toy engines run on."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil

from importer.engines.process_group import ENDED

PYTHON = Path(sys.executable)
PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
PATIENCE = 1800.0  # seconds; the one limit on the wall, against what hangs while no processor is free
ENOUGH = 120.0  # seconds with a free processor, after which nothing more is expected
LOOK = 0.05  # seconds between two looks
T = TypeVar("T")


class FreeTime:
    """A clock that runs while a processor is free: nothing is late because other processes want them all."""

    def __init__(self) -> None:
        self._begun = self._looked = time.monotonic()
        self._idle, self._free = psutil.cpu_times().idle, 0.0

    @property
    def seconds(self) -> float:
        """Seconds with a free processor so far; each reading ends one stretch of them."""
        now, idle = time.monotonic(), psutil.cpu_times().idle
        self._free += min(now - self._looked, idle - self._idle)
        self._looked, self._idle = now, idle
        return self._free

    @property
    def over(self) -> bool:
        """Whether there has been time enough for anything."""
        return self.seconds > ENOUGH or self._looked - self._begun > PATIENCE


def wait_until(happens: Callable[[], T], told: Callable[[], object] = str) -> T:
    """Return what ``happens`` gives, once it gives something; fail with what ``told`` gives."""
    clock = FreeTime()
    while not (found := happens()):
        assert not clock.over, told()
        time.sleep(LOOK)
    return found


def gone(pid: int) -> bool:
    """Whether nothing of a process is left, or only its exit status, which may have nobody to collect it."""
    try:
        return psutil.Process(pid).status() in ENDED
    except psutil.NoSuchProcess:
        return True


@contextmanager
def adopting() -> Iterator[None]:
    """As in a container whose first process collects nobody: an orphan's exit status stays (Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


def processor_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def family_seconds(process: psutil.Process) -> float:
    """Processor time of a process, of its children that have ended, and of all below it."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            used = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total
