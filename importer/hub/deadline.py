"""One limit of time over a whole answer of the Hub, whatever trickles in meanwhile."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

HEAD_READS = 1000  # of the socket until an answer's headers are whole: 64 KiB each, interim answers included


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one request may take, in seconds.

    ``connect``  to connect. ``read``  between two reads. ``whole``  for all tries and redirects together, and
    ``waits``  for the pauses between the tries, the first of which lasts ``pause``.
    """

    connect: float = 10.0
    read: float = 20.0
    whole: float = 120.0
    waits: float = 60.0
    pause: float = 0.2
    tries: int = 5


class Clock:
    """What is left of ``patience.whole``; pauses between tries do not count."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self._end = time.monotonic() + patience.whole
        self._reads = 0

    @property
    def left(self) -> float:
        """Seconds; none or less where the time is over."""
        return self._end - time.monotonic()

    def rest(self, seconds: float) -> None:
        """Sleep before the next try."""
        time.sleep(seconds)
        self._end += seconds

    def head(self) -> None:
        """The next answer's headers are waited for."""
        self._reads = HEAD_READS

    def body(self) -> None:
        """The headers are there; what follows is counted in bytes."""
        self._reads = -1

    def read(self) -> None:
        """Count one more read. Raises TimeoutError where there may be none."""
        if self._reads == 0 or self.left <= 0:
            self._end = min(self._end, time.monotonic())
            raise TimeoutError
        self._reads -= 1


class Timeout:
    """A timeout that shrinks: at most ``seconds``, and what the clock has left when somebody looks.

    The HTTP library hands it to ``socket.settimeout`` before each read, also of headers and interim answers,
    and that takes whatever is an index: whole seconds.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def __index__(self) -> int:
        self._clock.read()
        return max(1, math.ceil(min(self._seconds, self._clock.left)))
