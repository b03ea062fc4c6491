"""Process groups: signalled as a whole, and seen to be gone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

LOOK = 0.05  # seconds between two looks
PROC = Path("/proc")


def send(group: int, number: int) -> None:
    """Send a signal to every process of the group; a group that is gone is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def wait_gone(leader: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the group that ``leader`` leads, a child of ours, is gone within ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        leader.poll()
        if not alive(leader.pid):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK)


def alive(group: int) -> bool:
    """Whether a process of the group runs; one that has ended and waits to be collected does not count."""
    if (PROC / "self" / "stat").exists():
        return any(_runs_in(path, group) for path in PROC.glob("[0-9]*/stat"))
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _runs_in(stat: Path, group: int) -> bool:
    try:
        text = stat.read_text(errors="replace")
    except OSError:
        return False
    # After the name, which stands in parentheses and may hold anything: state, parent, group.
    state, _parent, its_group = text.rpartition(")")[2].split()[:3]
    return int(its_group) == group and state not in {"Z", "X"}
