"""JSON over HTTP to clusters that users and operators name: no redirects, no proxy, bounded answers.

One deadline holds for a whole request: it is asked for before each read, also of headers.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from importer.deadline import Deadline, response
from importer.errors import LauncherError
from importer.launchers.answers import LARGEST, Question

CONNECT, SECONDS = 20.0, 300.0  # for a connection, for one request: a package or a log may be on its way


@dataclass(frozen=True, slots=True)
class Received:
    """The status and the body of an answer."""

    status: int
    body: bytes

    @property
    def says(self) -> str:
        """Return the beginning of the body as text."""
        return " ".join(self.body[:1000].decode("utf-8", "replace").split())[:300] or "no text"


@dataclass(frozen=True, slots=True)
class Cluster:
    """An address, and headers that go with each request and are shown nowhere."""

    where: str
    tool: str
    host: str
    port: int
    tls: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def ask(
        self, deadline: Deadline, method: str, path: str, body: object = None, *, allow: tuple[int, ...] = ()
    ) -> Received:
        """Send one request; ``bytes`` go as they are, anything else as JSON.

        Raises LauncherError for a status above 299 that is not in ``allow``: "cluster-unreachable" from 500
        on, and where nobody answers; "cluster-refused"; "cluster-answer" for a body without an end.
        """
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        headers = {"Content-Type": kind, **self.headers}
        try:
            with closing(self._connection(deadline.sooner(SECONDS))) as connection:
                connection.request(method, path, data, headers)
                with connection.getresponse() as received:
                    answer = Received(received.status, received.read(LARGEST + 1))
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
            raise LauncherError("cluster-unreachable", where=self.where, problem=problem) from None
        if len(answer.body) > LARGEST:
            raise self.question(method, path).too_large()
        if answer.status > 299 and answer.status not in allow:
            raise self.refused(answer)
        return answer

    def question(self, method: str, path: str) -> Question:
        """Return what a request asks, for the reader of its answer."""
        return Question(self.where, self.tool, f"{method} {path}")

    def refused(self, answer: Received) -> LauncherError:
        """Return the error of an answer that is no use: trouble of the cluster's own may pass."""
        if answer.status >= 500:
            problem = f"status {answer.status}, {answer.says}"
            return LauncherError("cluster-unreachable", where=self.where, problem=problem)
        return LauncherError("cluster-refused", where=self.where, status=answer.status, says=answer.says)

    def _connection(self, deadline: Deadline) -> http.client.HTTPConnection:
        """Return an open connection; raises OSError."""
        connection = http.client.HTTPConnection(self.host, self.port)
        connection.sock = sock = _dialled(self.host, self.port, deadline)
        try:
            if self.tls:
                sock.settimeout(deadline.needed())
                context = ssl.create_default_context()
                connection.sock = sock = context.wrap_socket(sock, server_hostname=self.host)
            sock.settimeout(deadline.needed())  # for all that is sent
        except BaseException:
            sock.close()
            raise
        connection.response_class = partial(response, deadline)  # type: ignore[assignment]
        return connection


def _dialled(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Return a socket that is connected to the first address that answers; raises OSError."""
    problem = OSError("no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(min(CONNECT, deadline.needed()))
            sock.connect(address)
        except OSError as error:
            sock.close()
            problem = error
        else:
            return sock
    raise problem
