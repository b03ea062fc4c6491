"""One child from outside: started, asked, waited for, ended.

Wall time counts only while the child stands still: neither gets processor time nor waits for its turn.
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
GLANCE = 0.5  # seconds between looks at a child that does not answer
ENDING = 1.0  # seconds
LONGEST = 10  # times the wall time that a child may wait for its turn without any processor time


class StarvedError(Exception):
    """The child stood still for too long."""


class ChildLostError(Exception):
    """The child ended without an answer; ``of_time`` where the kernel ended it for its processor time."""

    def __init__(self, *, of_time: bool = False) -> None:
        self.of_time = of_time
        super().__init__()


class Child:
    """A process that answers lines; ``wall_seconds`` is how long it may stand still."""

    def __init__(self, memory: int, wall_seconds: float) -> None:
        self._wall_seconds = wall_seconds
        self._ready = False
        self.process = start(
            isolated("-c", STARTER, ROOT, str(memory)), Purpose.SANDBOX,
            stdin=PIPE, stdout=PIPE,
        )  # fmt: skip

    @property
    def alive(self) -> bool:
        """Return whether it can be asked."""
        return self.process.poll() is None

    def ask(self, line: bytes) -> bytes:
        """Return the answer to a line. Raises StarvedError and LostError; the child is of no use then."""
        try:
            if not self._ready:
                self._exchange(b"")
                self._ready = True
            return self._exchange(line)
        except OSError:
            raise self._lost() from None

    def end(self) -> None:
        """End it; who waits for its answer is told that it is lost."""
        self.process.kill()

    def close(self) -> None:
        """End it and forget it; nobody waits for its answer any more."""
        end(self.process)

    def _exchange(self, line: bytes) -> bytes:
        """Write and read one line, both sides watched so that neither can block the other."""
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
        """Return its pipes are closed already, so its end is near."""
        deadline = time.monotonic() + ENDING
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.01)
        return ChildLostError(of_time=self.process.returncode == -signal.SIGXCPU)


class _Patience:
    """How long a child has stood still, by the kernel's account of it where there is one."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._seconds = seconds
        self._used = -1.0
        self._moved = self._turned = time.monotonic()  # got processor time; or at least waited for it

    def ends(self) -> bool:
        """Return whether it has stood still for too long."""
        now = time.monotonic()
        used, waits = self._account()
        if used != self._used:
            self._used, self._moved, self._turned = used, now, now
        elif waits:
            self._turned = now
        return now - self._turned > self._seconds or now - self._moved > self._seconds * LONGEST

    def _account(self) -> tuple[float, bool]:
        """Return the seconds of processor time so far, and whether it waits for its turn.

        Elsewhere than on Linux a process counts as running while it sleeps, too.
        """
        import psutil  # nobody needs it for a child that answers at once

        try:
            child = psutil.Process(self._pid)
            used, status = child.cpu_times(), child.status()
        except psutil.Error:
            return 0.0, False
        return used.user + used.system, psutil.LINUX and status == psutil.STATUS_RUNNING
