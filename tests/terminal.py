"""A command at a pseudo-terminal of its own: wait for what it shows, type, see how it ends."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import termios
import time
from types import TracebackType
from typing import Any, Self

import psutil

from tests.commandline import Desk
from tests.waiting import LOOK, PATIENCE, FreeTime

ASLEEP = 6  # looks


class Terminal:
    """A context manager; what it runs is killed at its end if it still runs."""

    def __init__(self, desk: Desk, *words: object, **env: str) -> None:
        self._mine, its = pty.openpty()
        surroundings = {"TERM": "xterm-256color", "COLUMNS": "150", "NO_COLOR": "1", **env}
        streams: dict[str, Any] = {"stdin": its, "stdout": its, "stderr": its, "text": False}
        self._process = desk.start(*words, **streams, env=surroundings, preexec_fn=take_terminal)
        os.close(its)
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._mine)

    def expect(self, text: str) -> str:
        """Wait until ``text`` is shown after what was waited for before; what stands between."""
        clock = FreeTime()
        while text not in self.shown[self._seen :]:
            assert not clock.over, f"{text!r} was not shown, only: {self.shown}"
            assert self._read(), f"it ended before {text!r} was shown: {self.shown}"
        place = self.shown.index(text, self._seen)
        between, self._seen = self.shown[self._seen : place], place + len(text)
        return between

    def type(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def end(self) -> int:
        """The exit code; all that it showed is in ``shown``."""
        clock = FreeTime()
        while self._read():
            assert not clock.over, self.shown
        code = self._process.wait(PATIENCE)
        assert "Traceback" not in self.shown
        return code

    def settle(self) -> None:
        """Wait until it waits for a key: asleep at several looks, and in want of no processor."""
        process, asleep = psutil.Process(self._process.pid), 0
        while asleep < ASLEEP:
            wants = process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
            asleep = 0 if wants and psutil.LINUX else asleep + 1
            time.sleep(LOOK)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def _read(self) -> bool:
        """Take what there is within a moment; False when the other side is closed."""
        if not select.select([self._mine], [], [], 0.1)[0]:
            return self._process.poll() is None
        try:
            data = os.read(self._mine, 65536)
        except OSError:
            return False
        self.shown += self._decoder.decode(data).replace("\r", "")
        return bool(data)


def take_terminal() -> None:
    """In the child: standard input is its terminal, so that Ctrl-C is a signal."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
