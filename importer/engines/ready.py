"""Free ports and the readiness of an engine, by plain HTTP to loopback without a proxy."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from importer.engines.base import Readiness
from importer.reasons import Reason, ReasonKind

LOOPBACK = "127.0.0.1"
LOOK_SECONDS = 2.0  # for one answer to a GET
HTTP_OK = 200


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> int:
    """Return the first of ``count`` ports in a row that are free now."""
    while True:
        first = free_port()
        if all(is_free(port) for port in range(first, first + count)):
            return first


def is_free(port: int) -> bool:
    """Return whether a server could listen there; connections in TIME_WAIT do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except (OSError, OverflowError):
            return False
        return True


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


def _status(port: int, path: str, body: Mapping[str, Any] | None, seconds: float) -> int | None:
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
