"""A program that runs an engine and ends it after its owner: ``python -I supervisor.py LIFELINE GRACE
COMMAND…``.

It leads the engine's process group. LIFELINE is the number of a pipe's reading end whose writing end only
the owner holds: the system closes it however the owner ends, by ``kill -9`` too, and on every platform.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import select
import signal
import subprocess
import sys
import time

LOOK = 0.1  # seconds between two checks of the engine
SLACK = 1.0  # seconds of processors by which system and limit may differ


def main(lifeline: int, grace: float, command: list[str]) -> int:
    """Run ``command``; returns its exit status, ``128 + n`` after signal n.

    A kill at the limit of processor time counts as the signal for that, SIGXCPU.

    Does not return after the end of the owner.
    """
    # A handler, not SIG_IGN: the engine would inherit that.
    signal.signal(signal.SIGTERM, _stay)
    signal.signal(signal.SIGINT, _stay)
    engine = subprocess.Popen(command)  # with the input that this program was given
    limit = math.inf
    while engine.poll() is None:
        limit = _processor_seconds(engine.pid, limit)
        if select.select([lifeline], [], [], LOOK)[0]:
            _end(engine, grace)
    code = engine.returncode
    if code == -signal.SIGKILL and _used() >= limit - SLACK:
        code = -signal.SIGXCPU
    return code if code >= 0 else 128 - code


def _processor_seconds(pid: int, known: float) -> float:
    """Return the limit of processor time of a process; what is known where the system does not tell."""
    if not hasattr(resource, "prlimit"):
        return known
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_CPU)[1]
    except OSError:  # it has ended meanwhile
        return known
    return math.inf if hard == resource.RLIM_INFINITY else hard


def _used() -> float:
    """Return the seconds of processors of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
