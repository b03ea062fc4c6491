"""Whether an engine serves, or never will: by its answers, and its standstill."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from importer.engines import logs
from importer.engines.base import Readiness
from importer.engines.ports import LOOPBACK
from importer.engines.process_group import work
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

LOOK_SECONDS = 2.0  # for one answer to a GET
HTTP_OK = 200


class Exit(ReasonKind):
    """What an engine does that will never serve."""

    ANSWERS = "none, its server answers {status}"
    FIRST_REQUEST = "none, its first request got {status}"
    STILL = "none, it stood still for {seconds:.0f} s"


class NeverError(Exception):
    """The engine will not serve: ``code`` is its exit status, or its answer where it still runs."""

    def __init__(self, code: int | Reason) -> None:
        super().__init__(code)
        self.code = code


def answers(readiness: Readiness, port: int, deadline: float, report: Callable[[str], None]) -> bool:
    """Return whether the engine serves now.

    Raises NeverError, or TimeoutError when the warm-up outlasts ``deadline``.
    """
    status = _status(port, readiness.path, None, LOOK_SECONDS)
    if status in readiness.fatal:
        raise NeverError(Reason(Exit.ANSWERS, status=status))
    if status != HTTP_OK or readiness.warm_up is None:
        return status == HTTP_OK
    report("loading the weights")
    path, body = readiness.warm_up
    status = _status(port, path, body, max(0.1, deadline - time.monotonic()))
    if status is None and time.monotonic() >= deadline:
        raise TimeoutError
    if status is not None and status != HTTP_OK:
        raise NeverError(Reason(Exit.FIRST_REQUEST, status=status))
    return status == HTTP_OK


def _status(port: int, path: str, body: Mapping[str, object] | None, seconds: float) -> int | None:
    """Return the status of one request; ``None`` without a whole answer."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=seconds)
    with closing(connection):
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(
                "GET" if body is None else "POST", path, payload, {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return None
        return answer.status


LOOK = 1.0  # seconds between two looks at the processes
STILL = 12.0  # seconds without work behind an exception, after which nothing more is expected
BUSY = 0.05  # share of one processor's time; a server that waits takes less
RAISED = re.compile(r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b", re.MULTILINE)


@frozen
class Work:
    """What a group of processes has done: seconds of processors, bytes read, bytes of its log."""

    seconds: float
    read: int
    logged: int


@dataclass(slots=True)
class StartWatch:
    """The watch on one start of a group of processes."""

    group: int
    log: Path
    _looked: float = field(default=0.0, init=False)
    _since: float = field(default=0.0, init=False)
    _work: Work | None = field(default=None, init=False)

    def verdict(self) -> Reason | None:
        """Return why the engine will never serve; ``None`` while it may. Looks once in ``LOOK`` seconds."""
        now = time.monotonic()
        if now - self._looked < LOOK:
            return None
        self._looked = now
        return self._standstill(now)

    def _standstill(self, now: float) -> Reason | None:
        """Return for how long it has done nothing, behind an exception in its log."""
        work = self._done()
        if self._work is None or self._worked(self._work, work, now - self._since):
            self._work, self._since = work, now
            return None
        if now - self._since < STILL or RAISED.search(logs.tail(self.log)) is None:
            return None
        return Reason(Exit.STILL, seconds=now - self._since)

    def _done(self) -> Work:
        seconds, read = work(self.group)
        return Work(seconds, read, self.log.stat().st_size)

    @staticmethod
    def _worked(before: Work, after: Work, seconds: float) -> bool:
        same = (before.read, before.logged) == (after.read, after.logged)
        return not same or after.seconds - before.seconds > BUSY * max(seconds, LOOK)
