"""JSON over HTTP to clusters that users and operators name: no redirects, no proxy, bounded answers."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from importer.errors import LauncherError

SECONDS = 30.0  # between two bytes
LARGEST = 512 * 1024 * 1024  # bytes of an answer: a log with a whole receipt in it


@dataclass(frozen=True, slots=True)
class Answer:
    """The status and the body of an answer."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body's data; ``None`` where it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def says(self) -> str:
        """Return the beginning of the body as text."""
        return " ".join(self.body[:1000].decode("utf-8", "replace").split())[:300] or "no text"


@dataclass(frozen=True, slots=True)
class Cluster:
    """An address, and headers that go with each request and are shown nowhere."""

    where: str
    host: str
    port: int
    tls: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def ask(self, method: str, path: str, body: object = None, *, allow: tuple[int, ...] = ()) -> Answer:
        """Send one request; ``bytes`` go as they are, anything else as JSON.

        Raises LauncherError for a status above 299 that is not in ``allow``: "cluster-unreachable" from 500
        on, and where nobody answers; "cluster-refused".
        """
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        headers = {"Content-Type": kind, **self.headers}
        try:
            with closing(self._connection()) as connection:
                connection.request(method, path, data, headers)
                received = connection.getresponse()
                answer = Answer(received.status, received.read(LARGEST))
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
            raise LauncherError("cluster-unreachable", where=self.where, problem=problem) from None
        if answer.status > 299 and answer.status not in allow:
            raise self.refused(answer)
        return answer

    def refused(self, answer: Answer) -> LauncherError:
        """Return the error of an answer that is no use: trouble of the cluster's own may pass."""
        if answer.status >= 500:
            problem = f"status {answer.status}, {answer.says}"
            return LauncherError("cluster-unreachable", where=self.where, problem=problem)
        return LauncherError("cluster-refused", where=self.where, status=answer.status, says=answer.says)

    def _connection(self) -> http.client.HTTPConnection:
        if self.tls:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self.host, self.port, timeout=SECONDS, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
