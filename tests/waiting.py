"""Waiting until something happens, processor time, and the Python that toy engines run on."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from importer.engines.process_group import ENDED

PYTHON = Path(sys.executable)
PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
PATIENCE = 120.0  # seconds for anything; a busy machine must not fail a test


def wait_until(happens: Any, seconds: float = PATIENCE) -> bool:
    deadline = time.monotonic() + seconds
    while not happens() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(happens())


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


def crowd() -> float:
    """How many processes want each processor, at least one: by so much anything may take longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
