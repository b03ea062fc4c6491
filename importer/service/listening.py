"""The addresses that a server listens on, taken before anything else of it begins."""

from __future__ import annotations

import errno
import socket
from typing import Any

from importer.errors import ServiceError

BACKLOG = 2048  # connections that wait to be taken
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # such as ::1 of localhost where there is no IPv6


def listening(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of the host, all on one port; raises ServiceError("not-listening")."""
    found: list[socket.socket] = []
    failed: OSError | None = None
    try:
        for family, kind, number, _, place in socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            taken = found[0].getsockname()[1] if found else port
            try:
                found.append(_bound(socket.socket(family, kind, number), (place[0], taken, *place[2:])))
            except OSError as error:
                if error.errno not in NOT_HERE:
                    raise
                failed = error
        if failed is not None and not found:
            raise failed
    except OSError as error:
        for one in found:
            one.close()
        problem = error.strerror or type(error).__name__
        raise ServiceError("not-listening", host=host, port=port, problem=problem) from None
    return found


def _bound(one: socket.socket, place: Any) -> socket.socket:
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if one.family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(place)
        one.listen(BACKLOG)  # only that keeps another server off
    except OSError:
        one.close()
        raise
    return one
