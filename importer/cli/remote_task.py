"""``importer admin run-task``: the far end of ``--on``. Its stdin has the task; its end ends the run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress

from importer.app.remote import run_task
from importer.transport.bundle import LARGEST, Bundle, Frame
from importer.transport.exchange import BEAT
from importer.version import __version__

EVERY = 2.0  # seconds between two steps: logs of clusters are kept
LAST = 20.0  # seconds that a run without a near side has to stop its engine


def run() -> None:
    """Run the task and write its result; raises RemoteError("bad-bundle") where it cannot be read."""
    near = _NearSide()
    near.write(Frame("hello", __version__))
    bundle = Bundle.unpack(sys.stdin.buffer.readline(LARGEST))
    for work in (near.watch, near.beat):
        threading.Thread(target=work, daemon=True).start()
    near.finish(run_task(bundle, near.step).pack())


class _NearSide:
    """The two streams of this process; a run ends with the side that wants its result."""

    def __init__(self) -> None:
        self._lock, self._done, self._step = threading.Lock(), threading.Event(), "starting"

    def step(self, text: str) -> None:
        """Keep a step for the next frame."""
        self._step = text

    def beat(self) -> None:
        """Write a frame for each new step, and one now and then without."""
        written, quiet = "", 0.0
        while not self._done.wait(EVERY):
            quiet += EVERY
            if self._step != written or quiet >= BEAT:
                written, quiet = self._step, 0.0
                self.write(Frame("step", " ".join(written.split())[:120]))

    def watch(self) -> None:
        """End the run when stdin ends."""
        with suppress(OSError):
            while os.read(0, 1 << 16):
                pass
        self._gone()

    def write(self, frame: Frame) -> None:
        """Write a frame; a side that reads no more ends the run."""
        with self._lock:
            try:
                left = frame.line()
                while left:
                    left = left[os.write(1, left) :]
            except OSError:
                self._gone()

    def finish(self, text: str) -> None:
        """Write the result: from now on stdin may end."""
        self._done.set()
        self.write(Frame("result", text))

    def _gone(self) -> None:
        if self._done.is_set():
            return
        os.kill(os.getpid(), signal.SIGTERM)  # as Ctrl-C: the engine is stopped, and its folder removed
        self._done.wait(LAST)
        os._exit(130)  # its supervisor ends the engine
