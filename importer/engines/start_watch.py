"""A watch on an engine that starts: it listens elsewhere, or stands still behind an exception."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from importer.engines import logs, process_group
from importer.engines.arguments import grouped
from importer.engines.ready import LOOPBACK, Exit
from importer.reasons import Reason

LOOK = 1.0  # seconds between two looks at the processes
STILL = 12.0  # seconds without work behind an exception, after which nothing more is expected
BUSY = 0.05  # share of one processor's time; a server that waits takes less
REACHED = (LOOPBACK, "0.0.0.0", "::", f"::ffff:{LOOPBACK}")  # noqa: S104 - addresses that are read
RAISED = re.compile(r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
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
        heard = process_group.listening(self.group)
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
        seconds, read = process_group.work(self.group)
        return Work(seconds, read, self.log.stat().st_size)

    @staticmethod
    def _worked(before: Work, after: Work, seconds: float) -> bool:
        same = (before.read, before.logged) == (after.read, after.logged)
        return not same or after.seconds - before.seconds > BUSY * max(seconds, LOOK)
