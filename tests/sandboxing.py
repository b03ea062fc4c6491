"""Children of the sandbox as the kernel shows them, and somebody who stops or kills them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def children() -> set[int]:
    """The sandbox processes that this one has started and that still run."""
    found = set[int]()
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            with suppress(OSError):
                if b"importer.sandbox.serve" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.add(int(pid))
    return found


@contextmanager
def meddling(do: Callable[[int], None], times: int = 1_000_000) -> Iterator[list[int]]:
    """``do`` something to each of the first new children; the list grows with them."""
    met, known, over = list[int](), children(), threading.Event()

    def watch() -> None:
        while not over.is_set() and len(met) < times:
            for pid in sorted(children() - known):
                known.add(pid)
                met.append(pid)
                do(pid)
            time.sleep(0.005)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield met
    finally:
        over.set()
        thread.join()


def stop(pid: int) -> None:
    """Have it stand still."""
    os.kill(pid, signal.SIGSTOP)


def kill(pid: int) -> None:
    """End it without a word."""
    os.kill(pid, signal.SIGKILL)


def stopped_for(seconds: float) -> Callable[[int], None]:
    """Have it stand still for a while."""

    def do(pid: int) -> None:
        stop(pid)
        threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()

    return do
