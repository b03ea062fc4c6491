"""Requests to addresses that users name: none to private addresses, no redirects, no proxy."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from ipaddress import IPv4Address, ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from importer.frozen import frozen
from importer.hub.endpoint import HOST, PORTS, is_public
from importer.reasons import Reason, ReasonKind

SECONDS = 10.0  # for the connection, and between two bytes of the answer
TOTAL = 20.0  # seconds for all of it, from the look-up to the end of the answer's head
HEAD = 65_536  # bytes of an answer, up to the end of its head
LONGEST_URL = 2000  # characters


class AddressReason(ReasonKind):
    """Why nothing is sent to an address."""

    FORM = "form", "it has the form https://HOST/PATH"
    USER = "user", "it has a user name; the signature takes its place"
    PLAIN = "plain", "http is not encrypted"
    UNKNOWN = "unknown", "the name {host} has no address"
    PRIVATE = "private", "{host} is a private address"
    FAILED = "failed", "{host} could not be reached ({error})"
    NO_ANSWER = (
        "no-answer",
        "{host} sent no whole head of an answer within {seconds:.0f} s and {most:,} bytes",
    )


@frozen
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
    spelt = _literal(host)
    if not private and spelt is not None and not is_public(spelt):
        return Reason(AddressReason.PRIVATE, host=host)
    return None


def post(url: str, headers: Mapping[str, str], body: bytes, *, private: bool) -> Sent:
    """Send one request to the address that was checked, and return the status; redirects are not followed.

    An answer counts once its head is whole, within ``TOTAL`` seconds and ``HEAD`` bytes. Every address of the
    host has to be public, unless ``private``: a name may have several.
    """
    problem = check(url, private=private)
    if problem is not None:
        return Sent(None, problem)
    parts, deadline = urlsplit(url), time.monotonic() + TOTAL
    host = str(parts.hostname)
    try:
        address = _address(host, parts.port or PORTS[parts.scheme], private=private)
        if isinstance(address, Reason):
            return Sent(None, address)
        with _line(address, deadline) as line, closing(_connection(parts, line)) as connection:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", target, body, dict(headers))
            return Sent(connection.getresponse().status)
    except _NoAnswer:
        return Sent(None, Reason(AddressReason.NO_ANSWER, host=host, seconds=TOTAL, most=HEAD))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Sent(None, Reason(AddressReason.FAILED, host=host, error=type(error).__name__))


class _NoAnswer(Exception):
    """The answer has no whole head."""


class _Head(io.RawIOBase):
    """An answer up to the end of its head: neither an early end nor too many bytes pass for one."""

    def __init__(self, line: socket.socket) -> None:
        super().__init__()
        self._line, self._left = line, HEAD

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the reader that ``http.client`` asks a socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._line.recv_into(buffer)
        self._left -= read
        if not read or self._left < 0:
            raise _NoAnswer
        return read


@contextmanager
def _line(address: tuple[str, int], deadline: float) -> Iterator[socket.socket]:
    """Connect, and cut the line from another thread at the deadline, in a handshake, too."""
    if (left := deadline - time.monotonic()) <= 0:
        raise _NoAnswer
    with socket.create_connection(address, min(SECONDS, left)) as line, line.dup() as other:
        late = threading.Timer(deadline - time.monotonic(), _cut, (other,))
        late.start()
        try:
            yield line
        finally:
            late.cancel()
            late.join()


def _connection(parts: SplitResult, line: socket.socket) -> http.client.HTTPConnection:
    """Return a connection on a line to the checked address, under the name of the host."""
    host, port = str(parts.hostname), parts.port
    made: http.client.HTTPConnection
    if parts.scheme == "https":
        made = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=ssl.create_default_context())
    else:
        made = http.client.HTTPConnection(host, port, timeout=SECONDS)
    # http.client's own hook: a second look-up could have another answer.
    made._create_connection = lambda *_: line  # type: ignore[attr-defined] # noqa: SLF001
    made.response_class = _response  # type: ignore[assignment]
    return made


def _response(line: socket.socket, **said: Any) -> http.client.HTTPResponse:
    return http.client.HTTPResponse(_Head(line), **said)  # type: ignore[arg-type]


def _cut(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _address(host: str, port: int, *, private: bool) -> tuple[str, int] | Reason:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return Reason(AddressReason.UNKNOWN, host=host)
    addresses = [str(entry[4][0]) for entry in found]
    if not private and any(not is_public(address) for address in addresses):
        return Reason(AddressReason.PRIVATE, host=host)
    return addresses[0], port


def _literal(host: str) -> str | None:
    """Return the address that a host spells in any form of resolvers; ``None`` for a name.

    ``127.1``, ``0x7f000001``, ``0177.0.0.1`` and ``2130706433`` spell 127.0.0.1, and a dot may be behind it.
    """
    spelt = host.removesuffix(".")
    try:
        return str(ip_address(spelt))
    except ValueError:
        pass
    try:
        return str(IPv4Address(socket.inet_aton(spelt)))
    except (OSError, UnicodeError):
        return None
