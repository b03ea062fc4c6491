"""One limit over the whole of a wait, however many answers it takes."""

from __future__ import annotations

import errno
import math
import os
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time on the clock of ``time.monotonic``; without one the wait has no limit."""

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline in ``seconds``."""
        return cls(time.monotonic() + seconds)

    def sooner(self, seconds: float) -> Deadline:
        """Return this deadline, or the one in ``seconds`` where that is earlier."""
        return Deadline(min(self.at, time.monotonic() + seconds))

    @property
    def left(self) -> float:
        """Return the seconds until it, at least 0."""
        return max(0.0, self.at - time.monotonic())

    def needed(self) -> float:
        """Return the seconds until it for the next read; raises TimeoutError where none are left."""
        if not self.left:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return self.left


UNLIMITED = Deadline()
