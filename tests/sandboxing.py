"""Children of the sandbox: kept warm from test to test, and stopped or killed as they start."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from importer.sandbox import pool
from importer.sandbox.child import Child
from importer.sandbox.pool import Sandbox


@contextmanager
def meddling(do: Callable[[int], None], times: int = 1_000_000) -> Iterator[list[int]]:
    """``do`` something to each of the first new children as they start; the list grows with them."""
    met, make, enabled = list[int](), pool.Child, SPARES.enabled

    def harmed(memory: int, wall_seconds: float) -> Child:
        child = make(memory, wall_seconds)
        if len(met) < times:
            met.append(child.process.pid)
            do(child.process.pid)
        return child

    pool.Child, SPARES.enabled = harmed, False  # type: ignore[assignment, misc]
    try:
        yield met
    finally:
        pool.Child, SPARES.enabled = make, enabled  # type: ignore[misc]


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


class Spares:
    """Idle children of closed sandboxes, handed to the next one: starting a child costs 0.3 s of processor.

    They are real children, asked over their real pipes; only how long they live differs. ``fresh`` turns that
    off for tests of the start and the end of a child.
    """

    def __init__(self) -> None:
        self.enabled = True
        self._idle: list[Child] = []
        self._lock = threading.Lock()

    def install(self) -> None:
        """Stand between every sandbox of this process and its children."""
        close = Sandbox.close

        def keep_idle(sandbox: Sandbox) -> None:
            if self.enabled and sandbox._memory == pool.MEMORY:
                with sandbox._lock, self._lock:
                    self._idle += sandbox._idle
                    sandbox._idle = []
            close(sandbox)

        def take(memory: int, wall_seconds: float) -> Child:
            with self._lock:
                while self.enabled and memory == pool.MEMORY and self._idle:
                    child = self._idle.pop()
                    if child.alive:
                        child._wall_seconds = wall_seconds
                        return child
                    child.close()
            return Child(memory, wall_seconds)

        Sandbox.close = keep_idle  # type: ignore[method-assign]
        pool.Child = take  # type: ignore[assignment, misc]
        atexit.register(self.end)

    def end(self) -> None:
        """End them all."""
        while self._idle:
            self._idle.pop().close()


SPARES = Spares()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sandbox starts children of its own and ends them."""
    monkeypatch.setattr(SPARES, "enabled", False)
