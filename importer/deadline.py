"""One limit over the whole of a wait on another machine, however many answers and reads it takes."""

from __future__ import annotations

import errno
import io
import math
import os
import time
from http.client import HTTPResponse
from socket import socket
from typing import Any

from importer.frozen import frozen


@frozen
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


def response(deadline: Deadline, sock: socket, **more: Any) -> HTTPResponse:
    """Return a response whose reads, also of headers, end at a deadline: a ``response_class``."""
    made = HTTPResponse(sock, **more)
    with made.fp:
        made.fp = io.BufferedReader(_Timed(sock, deadline))
    return made


class _Timed(io.RawIOBase):
    """What a socket receives; each read has its own limit, and at most the seconds until the deadline."""

    def __init__(self, sock: socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline
        self._file = sock.makefile("rb", buffering=0)  # http.client may close the socket before the body

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Receive into a buffer; raises OSError, TimeoutError at the deadline."""
        left, own = self._deadline.needed(), self._sock.gettimeout()
        self._sock.settimeout(left if own is None else min(own, left))
        return self._file.readinto(buffer) or 0

    def close(self) -> None:
        """Let the socket go."""
        self._file.close()
        super().close()
