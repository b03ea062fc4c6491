"""The command ``run-task``: progress and the result in lines that a launcher reads in its log."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from importer.app.remote import run_task
from importer.cli import output
from importer.errors import LauncherError
from importer.launchers.bundle import LARGEST, STEP, read

EVERY = 2.0  # seconds between two lines of progress: logs of clusters are kept


def run(task: str) -> None:
    """Run a task; raises LauncherError("bad-bundle") where it cannot be read."""
    bundle = read(_bytes(task))
    result = run_task(bundle, _Lines())
    for line in result.to_lines():
        output.line(line)


class _Lines:
    """Progress as lines, at most one every ``EVERY`` seconds."""

    def __init__(self) -> None:
        self._last, self._lock = float("-inf"), threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            if time.monotonic() - self._last < EVERY:
                return
            self._last = time.monotonic()
            output.line(f"{STEP} {text}")
            sys.stdout.flush()


def _bytes(task: str) -> bytes:
    try:
        if task == "-":
            return sys.stdin.buffer.read(LARGEST)
        with Path(task).open("rb") as file:
            return file.read(LARGEST)
    except OSError as error:
        raise LauncherError("bad-bundle", problem=error.strerror or str(error)) from None
