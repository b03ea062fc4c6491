"""Requests to addresses that users name: none to private addresses, no redirects, no proxy."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from importer.hub.endpoint import HOST, PORTS, is_public
from importer.reasons import Reason

SECONDS = 10.0  # for the connection, and between two bytes of the answer
TOTAL = 20.0  # seconds for all of it: an answer may arrive byte by byte
LONGEST_URL = 2000  # characters


class AddressReason(StrEnum):
    """Why nothing is sent to an address."""

    FORM = "form"
    USER = "user"
    PLAIN = "plain"
    UNKNOWN = "unknown"
    PRIVATE = "private"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Sent:
    """The status of an answer, or why there is none."""

    status: int | None
    problem: Reason | None = None


def check(url: str, *, private: bool) -> Reason | None:
    """Return why nothing may be sent to a URL, by its form alone; ``private`` allows http, too."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return Reason(AddressReason.FORM)
    host = parts.hostname or ""
    printable = url.isascii() and url.isprintable() and " " not in url and len(url) <= LONGEST_URL
    if parts.scheme not in PORTS or not HOST.fullmatch(host) or port == 0 or not printable or parts.fragment:
        return Reason(AddressReason.FORM)
    if "@" in parts.netloc:
        return Reason(AddressReason.USER)
    if parts.scheme == "http" and not private:
        return Reason(AddressReason.PLAIN)
    if not private and _is_private_literal(host):
        return Reason(AddressReason.PRIVATE, host=host)
    return None


def post(url: str, headers: Mapping[str, str], body: bytes, *, private: bool) -> Sent:
    """Send one request to the address that was checked, and return the status; redirects are not followed.

    Every address of the host has to be public, unless ``private``: a name may have several.
    """
    problem = check(url, private=private)
    if problem is not None:
        return Sent(None, problem)
    parts = urlsplit(url)
    host = str(parts.hostname)
    try:
        address = _address(host, parts.port or PORTS[parts.scheme], private=private)
        if isinstance(address, Reason):
            return Sent(None, address)
        with closing(_connection(parts, address)) as connection:
            late = threading.Timer(TOTAL, _cut, (connection,))
            late.start()
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            try:
                connection.request("POST", target, body, dict(headers))
                return Sent(connection.getresponse().status)
            finally:
                late.cancel()
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Sent(None, Reason(AddressReason.FAILED, host=host, error=type(error).__name__))


def _connection(parts: SplitResult, address: tuple[str, int]) -> http.client.HTTPConnection:
    """Return a connection to the checked address, under the name of the host."""
    host, port = str(parts.hostname), parts.port
    made: http.client.HTTPConnection
    if parts.scheme == "https":
        made = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=ssl.create_default_context())
    else:
        made = http.client.HTTPConnection(host, port, timeout=SECONDS)
    # http.client's own hook: a second look-up could have another answer.
    made._create_connection = lambda _, *rest: socket.create_connection(address, *rest)  # type: ignore[attr-defined] # noqa: SLF001
    return made


def _cut(connection: http.client.HTTPConnection) -> None:
    """End an exchange that takes too long, from another thread."""
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _address(host: str, port: int, *, private: bool) -> tuple[str, int] | Reason:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return Reason(AddressReason.UNKNOWN, host=host)
    addresses = [str(entry[4][0]) for entry in found]
    if not private and any(not is_public(address) for address in addresses):
        return Reason(AddressReason.PRIVATE, host=host)
    return addresses[0], port


def _is_private_literal(host: str) -> bool:
    try:
        return not is_public(host)
    except ValueError:
        return False
