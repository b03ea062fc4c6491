"""Waiting until something happens, and the Python that toy engines run on."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

PYTHON = Path(sys.executable)


def wait_until(happens: Any, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not happens() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(happens())
