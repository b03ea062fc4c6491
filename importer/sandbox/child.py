"""One child from the parent's side: start, exchange, wait, end.

Wall time counts only while the child is stalled: it neither gets processor time nor waits for the processor.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from pathlib import Path

import importer
from importer.launcher import PIPE, Purpose, end, isolated, start
from importer.sandbox.task import MAX_ANSWER

ROOT = str(Path(importer.__file__).resolve().parents[1])
STARTER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from importer.sandbox.serve import main; main(int(sys.argv[2]))"
)
GLANCE = 2.0  # seconds between checks of a silent child; most answer within one
ENDING = 1.0  # seconds
LONGEST = 10  # times the wall time that a child may wait for the processor


class StarvedError(Exception):
    """The child was stalled for too long."""


class ChildLostError(Exception):
    """The child ended without a response; ``of_time`` where the kernel ended it for its processor time."""

    def __init__(self, *, of_time: bool = False) -> None:
        self.of_time = of_time
        super().__init__()


class Child:
    """A process that answers lines; ``wall_seconds`` is the longest stall."""

    def __init__(self, memory: int, wall_seconds: float) -> None:
        self._wall_seconds = wall_seconds
        self._ready = False
        self.process = start(
            isolated("-c", STARTER, ROOT, str(memory)), Purpose.SANDBOX,
            stdin=PIPE, stdout=PIPE,
        )  # fmt: skip

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        return self.process.poll() is None

    def ask(self, line: bytes) -> bytes:
        """Return the response to a line.

        Raises StarvedError and ChildLostError; the child is of no use then.
        """
        try:
            if not self._ready:
                self._exchange(b"")
                self._ready = True
            return self._exchange(line)
        except OSError:
            raise self._lost() from None

    def end(self) -> None:
        """Kill the process; a waiting ``ask`` raises ChildLostError."""
        self.process.kill()

    def close(self) -> None:
        """Kill the process and close its pipes; no ``ask`` may be waiting."""
        end(self.process)

    def _exchange(self, line: bytes) -> bytes:
        """Write a line and return a line; both pipes are watched, so neither blocks the other."""
        patience = _Patience(self.process.pid, self._wall_seconds)
        into, out = self.process.stdin, self.process.stdout
        assert into is not None  # noqa: S101 - opened with pipes above
        assert out is not None  # noqa: S101
        os.set_blocking(into.fileno(), False)
        waiting, answer = memoryview(line), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            if waiting:
                selector.register(into, selectors.EVENT_WRITE)
            while not answer.endswith(b"\n"):
                ready = selector.select(min(GLANCE, self._wall_seconds / 2))
                if not ready and patience.ends():
                    raise StarvedError
                for key, _ in ready:
                    if key.fileobj is into:
                        waiting = waiting[os.write(key.fd, waiting[: 1 << 16]) :]
                        if not waiting:
                            selector.unregister(into)
                        continue
                    piece = os.read(key.fd, 1 << 20)
                    answer += piece
                    if not piece or len(answer) > MAX_ANSWER + 1:
                        raise self._lost()
        return bytes(answer)

    def _lost(self) -> ChildLostError:
        """Return the error for a process with closed pipes, after a short wait for its exit status."""
        deadline = time.monotonic() + ENDING
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.01)
        return ChildLostError(of_time=self.process.returncode == -signal.SIGXCPU)


class _Patience:
    """The time that a child has been stalled, by the kernel's account where there is one."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._seconds = seconds
        self._used = -1.0
        self._moved = self._turned = time.monotonic()  # last processor time; last wait for the processor

    def ends(self) -> bool:
        """Return whether the child has been stalled for too long."""
        now = time.monotonic()
        used, waits = self._account()
        if used != self._used:
            self._used, self._moved, self._turned = used, now, now
        elif waits:
            self._turned = now
        return now - self._turned > self._seconds or now - self._moved > self._seconds * LONGEST

    def _account(self) -> tuple[float, bool]:
        """Return the seconds of processor time so far, and whether the child waits for the processor.

        Outside Linux a sleeping process counts as running too, so the wait is always false.
        """
        import psutil  # not required for a child that answers at once

        try:
            child = psutil.Process(self._pid)
            used, status = child.cpu_times(), child.status()
        except psutil.Error:
            return 0.0, False
        return used.user + used.system, psutil.LINUX and status == psutil.STATUS_RUNNING
