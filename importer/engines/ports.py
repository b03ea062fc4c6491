"""Ports of this machine that are free."""

from __future__ import annotations

import socket

from importer.errors import EngineError

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Return a port that is free now; raises EngineError("no-port")."""
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, 0))
        except OSError as closed:
            raise EngineError("no-port", address=LOOPBACK, problem=closed.strerror) from closed
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
