"""A program that runs an engine and ends it after its owner: ``python -I supervisor.py LIFELINE GRACE
COMMAND…``.

It leads the engine's process group. LIFELINE is the number of a pipe's reading end whose writing end only
the owner holds: the system closes it however the owner ends, by ``kill -9`` too, and on every platform.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

LOOK = 0.1  # seconds between two checks of the engine


def main(lifeline: int, grace: float, command: list[str]) -> int:
    """Run ``command``; returns its exit status, ``128 + n`` after signal n.

    Does not return after the end of the owner.
    """
    # A handler, not SIG_IGN: the engine would inherit that.
    signal.signal(signal.SIGTERM, _stay)
    signal.signal(signal.SIGINT, _stay)
    engine = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while engine.poll() is None:
        if select.select([lifeline], [], [], LOOK)[0]:
            _end(engine, grace)
    return engine.returncode if engine.returncode >= 0 else 128 - engine.returncode


def _stay(_number: int, _frame: object) -> None:
    """Ignore the signal, to collect the engine after its end."""


def _end(engine: subprocess.Popen[bytes], grace: float) -> None:
    os.killpg(0, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while engine.poll() is None and time.monotonic() < deadline:
        time.sleep(LOOK)
    engine.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        engine.wait(grace)  # its owner's descriptors, locks among them, stay open until it has ended
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
