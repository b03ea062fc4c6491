"""A child process that answers in JSON lines: with time limits, and an end that includes its children."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import selectors
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer import launcher
from importer.engines.deaths import Accident
from importer.launcher import PIPE, Purpose, isolated
from importer.reasons import Reason

GLANCE = 0.5  # seconds between looks at the time that a silent process used
MOST_ANSWER = 64 * 2**20  # bytes of one line; a stranger's template decides how long a prompt is


class WorkerLostError(Exception):
    """The process died or hung."""

    def __init__(self, kind: Accident, **fields: object) -> None:
        super().__init__(kind)
        self.reason = Reason(kind, **fields)


class SpentError(Exception):
    """The process used more seconds of processors than it was granted."""


@dataclass(slots=True)
class Budget:
    """Seconds of processors that the workers of one import may use together, a first start apart."""

    seconds: float = 15.0
    left: float = 15.0


class RefusedError(Exception):
    """The process rejected a request, and goes on."""


class JsonLinesWorker:
    """One process: requests on standard input, answers on standard output, errors in a file.

    Its temporary files are in a folder of its own that ``close`` removes: a killed process removes none.
    It runs under the supervisor of engines, and so ends with this process, by ``kill -9`` too.
    """

    def __init__(self, command: Sequence[str], purpose: Purpose, extra: Mapping[str, str]) -> None:
        """Start the process with ``extra`` variables; raises OSError where that fails."""
        from importer.engines.process import SUPERVISOR, lifeline

        if not os.access(command[0], os.X_OK):  # the supervisor would report it as an end of the engine
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        self._owner = contextlib.ExitStack()
        watched = self._owner.enter_context(lifeline())
        command = isolated(str(SUPERVISOR), str(watched), "0", *command)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._folder = tempfile.TemporaryDirectory(prefix="importer-worker-", ignore_cleanup_errors=True)
        extra = {**extra, "TMPDIR": self._folder.name}
        try:
            self._process = launcher.start(
                command, purpose, stdin=PIPE, stdout=PIPE, stderr=self._log, extra=extra, keep=(watched,)
            )
        except OSError:
            self._owner.close()
            self._log.close()
            self._folder.cleanup()
            raise
        self._input, self._output = self._process.stdin, self._process.stdout
        self._buffer = bytearray()
        self._number = 0
        self._spent = 0.0
        self.unloaded: str | None = None  # why the tokenizer of the last question does not load

    def ask(self, operation: str, patience: float, most: float = math.inf, **fields: Any) -> Iterator[Any]:
        """Send a request and yield each item of the answer, each within ``patience`` seconds.

        ``most`` is the ``spent`` at which it ends. Raises WorkerLostError, RefusedError or SpentError. Unread
        items are skipped by the next request.
        """
        self._number += 1
        number = self._number
        request = json.dumps({"id": number, "op": operation, **fields}) + "\n"
        try:
            if self._input is not None:
                self._input.write(request.encode())
                self._input.flush()
        except OSError:
            raise self._died() from None
        while True:
            answer = self._answer(patience, most)
            if answer["id"] != number:
                continue
            if "error" in answer:
                raise RefusedError(answer["error"])
            if "done" in answer:
                self.unloaded = None if answer["done"] is True else str(answer["done"])
                return
            yield answer["item"]

    def close(self) -> int:
        """End the process with its whole group; returns its exit status, negative for a signal."""
        with contextlib.suppress(OSError):
            self._log.close()
        status = launcher.end(self._process)
        self._owner.close()
        self._folder.cleanup()
        return _signalled(status) or 0

    @property
    def spent(self) -> float:
        """Return the seconds of processors that the process and its children have used."""
        from importer.engines.process_group import work

        self._spent = max(self._spent, work(self._process.pid)[0])
        return self._spent

    def _answer(self, patience: float, most: float) -> Mapping[str, object]:
        deadline, searched = time.monotonic() + patience, 0
        with selectors.DefaultSelector() as selector:
            if self._output is not None:
                selector.register(self._output, selectors.EVENT_READ)
            while (end := self._buffer.find(b"\n", searched)) < 0:
                searched = len(self._buffer)
                if searched > MOST_ANSWER:
                    raise WorkerLostError(Accident.MEMORY)
                left = deadline - time.monotonic()
                ready = selector.select(max(0.0, min(left, GLANCE)))
                if not ready and most < math.inf and self.spent > most:
                    raise SpentError
                if not ready and left <= GLANCE:
                    raise WorkerLostError(Accident.HANG, seconds=patience)
                if not ready:
                    continue
                chunk = os.read(ready[0][0].fd, 1 << 16)
                if not chunk:
                    raise self._died()
                self._buffer += chunk
        answer: Mapping[str, object] = json.loads(self._buffer[:end])
        del self._buffer[: end + 1]
        return answer

    def _died(self) -> WorkerLostError:
        code = _signalled(launcher.ended(self._process, 2))
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
        words = self._log.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return WorkerLostError(Accident.DEATH, status=code, words=last[:200])


def _signalled(status: int | None) -> int | None:
    """Return an exit status, negative for a signal, as a supervisor reports it with 128 more."""
    return 128 - status if status is not None and status > 128 else status
