"""Whether an engine serves, or never will: by its answers, its address, and its standstill."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from importer.engines import logs
from importer.engines.base import Readiness, grouped
from importer.engines.ports import LOOPBACK
from importer.engines.process_group import listening, work
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

LOOK_SECONDS = 2.0  # for one answer to a GET
HTTP_OK = 200


class Exit(ReasonKind):
    """What an engine does that will never serve."""

    ANSWERS = "answers", "none, its server answers {status}"
    ELSEWHERE = "elsewhere", "none, it listens on {address}"
    FIRST_REQUEST = "first-request", "none, its first request got {status}"
    STILL = "still", "none, it stood still for {seconds:.0f} s"


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
REACHED = (LOOPBACK, "0.0.0.0", "::", f"::ffff:{LOOPBACK}")  # noqa: S104 - addresses that are read
RAISED = re.compile(r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b", re.MULTILINE)


@frozen
class Work:
    """What a group of processes has done: seconds of processors, bytes read, bytes of its log."""

    seconds: float
    read: int
    logged: int


@dataclass(slots=True)
class StartWatch:
    """The watch on one start.

    ``group``  of its processes. ``port``  where its clients ask. ``arguments``  of its command.
    """

    group: int
    port: int
    log: Path
    arguments: Sequence[str]
    _looked: float = field(default=0.0, init=False)
    _since: float = field(default=0.0, init=False)
    _work: Work | None = field(default=None, init=False)

    def verdict(self) -> Reason | None:
        """Return why the engine will never serve; ``None`` while it may. Looks once in ``LOOK`` seconds."""
        now = time.monotonic()
        if now - self._looked < LOOK:
            return None
        self._looked = now
        return self._elsewhere() or self._standstill(now)

    def _elsewhere(self) -> Reason | None:
        """Return the address that it listens on, where its clients do not reach that."""
        heard = listening(self.group)
        if any(port == self.port and host in REACHED for host, port in heard):
            return None
        for host, port in sorted(heard):
            # A port of another argument is not for clients: ranks meet at one.
            named = self._named(host) if port == self.port else self._overruled(port)
            if port == self.port or named is not None:
                asked = f"{LOOPBACK}:{self.port}"
                return Reason(Exit.ELSEWHERE, address=f"{host}:{port}", asked=asked, argument=named)
        return None

    def _named(self, host: str) -> str | None:
        """Return the argument with this host."""
        return next((f"{flag} {value}" for flag, value in self._pairs() if value == host), None)

    def _overruled(self, port: int) -> str | None:
        """Return the argument with this port, where the same one has the port that clients ask."""
        pairs = [*self._pairs()]
        own = {flag for flag, value in pairs if value == str(self.port)}
        return next((f"{flag} {value}" for flag, value in pairs if flag in own and value == str(port)), None)

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for flag, values in grouped([*self.arguments]):
            yield flag, values[0] if values else ""

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
