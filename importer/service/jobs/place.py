"""Where a process runs: which others are beside it, and whether one of them is still there."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Here:
    """The process that asks: ``place`` is the same for all that see one another's process ids."""

    place: str
    host: str
    pid: int
    born: str


@cache
def here() -> Here:
    """The process that asks, as others can look for it."""
    pid = os.getpid()
    return Here(_place(), platform.node() or "localhost", pid, born(pid) or "0")


def gone(place: str, pid: int, since: str) -> bool:
    """Whether a process of this place has ended; one of another place may be there."""
    return place == here().place and born(pid) != since


def born(pid: int) -> str | None:
    """When a process was started, in the kernel's ticks; ``None`` where there is none, or only its corpse."""
    try:
        state, *rest = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return _alive(pid)
    return None if state in {"Z", "X"} else rest[18]


def _alive(pid: int) -> str | None:
    """Without /proc: whether there is such a process at all."""
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
    """The boot and the space of process ids, so that two containers are two places."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(PROC / 'self/ns/pid')}"  # noqa: PTH115 - no path
    except OSError:
        return platform.node()
