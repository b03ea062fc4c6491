"""The one reader of what clusters and other machines answer: bounded, typed, or one kind of failure.

JSON is read into an ``Answer``, the last line of a script by a pattern. Everything else is
LauncherError("cluster-answer") with the printable beginning of what came.

JSON over HTTP to clusters that users and operators name: no redirects, no proxy, bounded answers.

One deadline holds for a whole request: it is asked for before each read, also of headers.
"""

from __future__ import annotations

import errno
import http.client
import json
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import field
from functools import cache, partial
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    model_validator,
)

from importer import launcher as processes
from importer.deadline import UNLIMITED, Deadline, response
from importer.errors import LauncherError, one_line
from importer.frozen import frozen
from importer.launcher import Finished, Purpose
from importer.reasons import Reason, ReasonKind

T = TypeVar("T")
LARGEST = processes.MOST_OUTPUT  # bytes of one answer
MOST_VALUES, MOST_ENTRIES = 1_000_000, 10_000  # of one answer, of one of its lists
SHOWN, SAID = 200, 300  # characters of an answer in an error, of a cluster's own words
# One without an end goes to the last byte: else each of its quotes would be tried as a beginning.
STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# What kubectl is known to print before its JSON.
KUBECTL_WARNINGS = re.compile(r"(?:(?:Warning: |[EFIW][0-9]{4} )[^\n]*+(?:\n|\Z))*+")


class AnswerReason(ReasonKind):
    """Why an answer that is not shown cannot be used."""

    NOTHING = "nothing", "it is empty"
    TOO_LARGE = "too-large", "it has more than {megabytes} MiB"


class Answer(BaseModel):
    """A JSON object of a cluster: other members do not matter, and null is an absent member."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data


def _said(text: str) -> str:
    return " ".join(text[: 10 * SAID].split())[:SAID]


Said = Annotated[StrictStr, AfterValidator(_said)]  # a cluster's own words, in one short line
Name = Annotated[StrictStr, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$")]
Entries = Annotated[list[T], Field(max_length=MOST_ENTRIES), FailFast()]


def parsed(kind: type[T], data: bytes, largest: int = LARGEST) -> T:
    """Return untrusted JSON as the type ``kind``; raises ValueError, never RecursionError."""
    if len(data) > largest:
        raise ValueError(largest)
    bare = STRINGS.sub(b"", data)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MOST_VALUES:
        raise ValueError(MOST_VALUES)
    read: T = _adapter(kind).validate_json(data)  # type: ignore[arg-type]
    return read


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def without_warnings(text: str) -> str:
    """Return what kubectl printed behind its warnings."""
    return KUBECTL_WARNINGS.sub("", text, count=1)


@frozen
class Question:
    """What is asked of one tool at one place; ``deadline`` is that of the whole wait."""

    where: str
    tool: str
    words: str
    deadline: Deadline = UNLIMITED

    def ask(self, argv: Sequence[str], seconds: float, text: str = "") -> Finished:
        """Run the tool for at most ``seconds``; raises LauncherError, also for an endless answer."""
        try:
            return processes.run(argv, Purpose.REMOTE, seconds=min(seconds, self.deadline.left), text=text)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise self.too_large() from None
            problem = error.strerror or type(error).__name__
            raise LauncherError("cluster-unreachable", where=self.where, problem=problem) from None

    def read(self, kind: type[T], done: Finished | bytes) -> T:
        """Return the JSON that came as ``kind``; raises LauncherError("cluster-answer")."""
        if isinstance(done, bytes):
            text, data = done[: 10 * SHOWN].decode("utf-8", "replace"), done
        else:
            text = done.output if done.output.strip() else done.errors
            data = without_warnings(done.output).encode()
        try:
            return parsed(kind, data)
        except ValueError:
            raise self.odd(text) from None

    def line(self, form: re.Pattern[str], done: Finished) -> re.Match[str]:
        """Return the last line of a script's answer; a login may print others before.

        Raises LauncherError("cluster-answer") where the line has another form.
        """
        found = form.fullmatch(done.output.rstrip().rpartition("\n")[2].rstrip("\r"))
        if found is None:
            raise self.odd(done.output if done.output.strip() else done.errors)
        return found

    def odd(self, came: str) -> LauncherError:
        """Return the error of an answer that cannot be used."""
        shown = one_line(came[: 10 * SHOWN])[:SHOWN]
        return self._error(shown or Reason(AnswerReason.NOTHING))

    def too_large(self) -> LauncherError:
        """Return the error of an answer beyond the limit."""
        return self._error(Reason(AnswerReason.TOO_LARGE, megabytes=LARGEST >> 20))

    def _error(self, came: object) -> LauncherError:
        return LauncherError(
            "cluster-answer", where=self.where, tool=self.tool, asked=one_line(self.words), came=came
        )


CONNECT, SECONDS = 20.0, 300.0  # for a connection, for one request: a package or a log may be on its way


@frozen
class Received:
    """The status and the body of an answer."""

    status: int
    body: bytes

    @property
    def says(self) -> str:
        """Return the beginning of the body as text."""
        return " ".join(self.body[:1000].decode("utf-8", "replace").split())[:300] or "no text"


@frozen
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
