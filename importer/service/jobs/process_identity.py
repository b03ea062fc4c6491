"""Identify processes across machines, and check whether one of this machine has exited."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process; ``place`` is the same for all that see one another's process ids."""

    place: str
    host: str
    pid: int
    start_time: str


@cache
def this_process() -> ProcessIdentity:
    """Return the identity of this process."""
    pid = os.getpid()
    return ProcessIdentity(_place(), platform.node() or "localhost", pid, start_time(pid) or "0")


def has_exited(place: str, pid: int, since: str) -> bool:
    """Return whether a process of this machine has exited; false for one of another machine."""
    return place == this_process().place and start_time(pid) != since


def start_time(pid: int) -> str | None:
    """Return when a process was started, in the kernel's ticks; ``None`` for none, or for a zombie."""
    try:
        state, *rest = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return _alive(pid)
    return None if state in {"Z", "X"} else rest[18]


def _alive(pid: int) -> str | None:
    """Return whether a process exists, where there is no /proc."""
    if PROC.joinpath("self", "stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "0"


def _place() -> str:
    """Return the boot and the space of process ids, so that two containers are two places."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(PROC / 'self/ns/pid')}"  # noqa: PTH115 - no path
    except OSError:
        return platform.node()
