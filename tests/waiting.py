"""Waiting until something happens, processor time, and the Python that toy engines run on."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

PYTHON = Path(sys.executable)
PATIENCE = 120.0  # seconds for anything; a busy machine must not fail a test


def wait_until(happens: Any, seconds: float = PATIENCE) -> bool:
    deadline = time.monotonic() + seconds
    while not happens() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(happens())


def processor_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def crowd() -> float:
    """How many processes want each processor, at least one: by so much anything may take longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
