"""Process groups: signalled as a whole, and seen to be gone."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

LOOK = 0.05  # seconds between two looks
PROC = Path("/proc")
SHARED = re.compile(r"(/dev/shm/\S+)")


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


def resident(group: int) -> int | None:
    """Bytes of memory that the group's processes hold; ``None`` where the system does not tell."""
    if (PROC / "self" / "statm").exists():
        page = os.sysconf("SC_PAGE_SIZE")
        texts = (_text(folder / "statm").split() for folder in _members(group))
        return sum(int(words[1]) * page for words in texts if len(words) > 1)
    try:
        listed = subprocess.run(
            ["ps", "-axo", "pgid=,rss="], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    rows = (line.split() for line in listed.stdout.splitlines())
    return sum(int(row[1]) * 1024 for row in rows if len(row) == 2 and row[0] == str(group))


def shared(group: int) -> set[Path]:
    """Files in shared memory that the group's processes use; none where the system does not tell."""
    maps = (_text(folder / "maps") for folder in _members(group))
    return {Path(found) for text in maps for found in SHARED.findall(text)}


def _members(group: int) -> Iterator[Path]:
    return (path.parent for path in PROC.glob("[0-9]*/stat") if _runs_in(path, group))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


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
