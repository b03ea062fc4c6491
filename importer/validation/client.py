"""A small client of the OpenAI API: three requests, limits, and a log of every exchange without its key.

Every receive of a socket asks the clock, the size of the answer, and what is left to the run.

Headers that go with each request to a running server: their names, their values, and what no header may
change.

Secrets are cut out of what a server sends, before anything reads, judges or keeps it.
"""

from __future__ import annotations

import http.client
import io
import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

from importer.errors import UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.sentences import render
from importer.validation.errors import (
    AnswerFailure,
    ExchangeError,
    Overloaded,
    ReplyError,
    RequestRefused,
    RunOver,
    ServerUnreachable,
    SilenceReason,
    TimedOut,
)
from importer.validation.outcome import ExchangeRow
from importer.validation.reply import (
    NO_JSON,
    Reply,
    error_message,
    from_completion,
    from_stream,
    from_whole,
    loaded,
)


class RequestHeaderReason(ReasonKind):
    """Why a header is refused."""

    NOT_A_NAME = "has no valid name"
    RESERVED = "belongs to the request itself"
    NO_VALUE = "has no value"
    NOT_A_VALUE = "has a value that is not one line of printable ASCII"
    TWICE = "is given twice"
    BESIDE_KEY = "is given beside a key, which is sent under this name"


NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # a token of RFC 9110
HEADERS_VALUE = re.compile(
    r"[!-~](?:[ -~\t]{0,8190}[!-~])?"
)  # printable ASCII without white space at its ends
# The request's own: its length and form, its connection, its host.
RESERVED = frozenset(
    ("accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
     "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)  # fmt: skip
KEY = "authorization"  # the header of a key


def checked(headers: Iterable[tuple[str, str]], *, key: bool = False) -> dict[str, str]:
    """Return headers by name, ``key`` where the request has a key beside them.

    Raises UsageError("bad-header"), which never has a value.
    """
    taken: dict[str, str] = {}
    for number, (name, value) in enumerate(headers, 1):
        problem = _problem(name, value.strip(), {other.lower() for other in taken}, key=key)
        if problem is not None:  # what is no name may be a value
            shown = f"number {number}" if problem is RequestHeaderReason.NOT_A_NAME else name
            raise UsageError("bad-header", header=shown, problem=Reason(problem))
        taken[name] = value.strip()
    return taken


def _problem(name: str, value: str, taken: set[str], *, key: bool) -> RequestHeaderReason | None:
    if not NAME.fullmatch(name):
        return RequestHeaderReason.NOT_A_NAME
    if name.lower() in RESERVED:
        return RequestHeaderReason.RESERVED
    if name.lower() in taken:
        return RequestHeaderReason.TWICE
    if key and name.lower() == KEY:
        return RequestHeaderReason.BESIDE_KEY
    if not value:
        return RequestHeaderReason.NO_VALUE
    return None if HEADERS_VALUE.fullmatch(value) else RequestHeaderReason.NOT_A_VALUE


SHORTEST = 8  # characters; local servers accept any key, and shorter values occur by chance
CUT = "…"


def secrets_of(values: Iterable[str | None]) -> tuple[str, ...]:
    """Return the values and their words, plain and as JSON writes them, the longest first.

    A server may send back a key without its scheme. Parts shorter than ``SHORTEST`` are no secrets.
    """
    parts = [part for value in values if value for part in (value, *value.split())]
    written = ((part, json.dumps(part)[1:-1]) for part in parts)
    forms = {form for plain, text in written for form in (plain, text, text.replace("/", "\\/"))}
    return tuple(sorted((form for form in forms if len(form) >= SHORTEST), key=lambda f: (-len(f), f)))


def without(data: Any, secrets: Iterable[str]) -> Any:
    """Return ``data`` with the secrets cut out of every text, keys of mappings included."""
    if isinstance(data, str):
        for secret in secrets:
            data = data.replace(secret, CUT)
        return data
    if isinstance(data, Mapping):
        return {without(key, secrets): without(value, secrets) for key, value in data.items()}
    return [without(value, secrets) for value in data] if isinstance(data, list | tuple) else data


def redacted(chunks: Iterable[bytes], secrets: Iterable[str]) -> Iterator[bytes]:
    """Yield the chunks without the secrets, which may lie across their borders.

    The end of a chunk that may begin a secret waits for the next one.
    """
    known, kept = [secret.encode() for secret in secrets], b""
    for chunk in chunks:
        kept = _cut(kept + chunk, known)
        waiting = max((_begun(kept, secret) for secret in known), default=0)
        if len(kept) > waiting:
            yield kept[: len(kept) - waiting]
            kept = kept[len(kept) - waiting :]
    if kept:
        yield kept


def _cut(data: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in secrets:
        data = data.replace(secret, CUT.encode())
    return data


def _begun(data: bytes, secret: bytes) -> int:
    """Return the length of the longest end of ``data`` that begins the secret and is not all of it."""
    longest = min(len(data), len(secret) - 1)
    return next((size for size in range(longest, 0, -1) if data.endswith(secret[:size])), 0)


class ClientReason(ReasonKind):
    """Why a body is not read."""

    NOT_JSON = "the answer of {path} is not JSON"
    TOO_LARGE = "the answer is larger than {limit} bytes"


TIME_LIMIT = 120.0  # seconds for one exchange, first byte to last
TOTAL_LIMIT = 600.0  # seconds for all exchanges of a validation
OVERLOADED = 429
UNAVAILABLE = 503  # for load, where the answer names a time
PATIENCE = 30.0  # seconds that one request waits for a server that refuses for load
PAUSES = (1.0, 2.0, 4.0, 8.0)  # between tries, where the server names no time
MAX_BODY = 16_000  # characters of a body that a receipt keeps
MAX_ANSWER = 4 * 1024 * 1024  # bytes of an answer; real ones have 1 MB, for 2,048 tokens
MAX_RUN = 64 * 1024 * 1024  # bytes of all answers of a run
VALUE = 16  # bytes by which each value of JSON counts for more: in memory it takes them


def weight(data: bytes) -> int:
    """Return the bytes that a piece of an answer counts for: its own, and those of the values in it."""
    return len(data) + VALUE * sum(map(data.count, (b",", b"[", b"{")))


@dataclass(slots=True)
class Budget:
    """The bytes of answers that are left to a run, for all of its threads."""

    left: int = MAX_RUN
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def spend(self, size: int) -> None:
        """Take this many bytes out of the budget."""
        with self._lock:
            self.left -= size


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as bytes on the wire; filled in as the answer arrives.

    ``seconds``  until the answer was whole, ``first`` until the first byte of its body.
    ``tokens``   of a streamed answer, as the engine counts them. ``server``  names the server's software.
    ``read``     the weight of what has come, with its head; nothing comes after ``ends``.
    """

    method: str
    path: str
    request: Mapping[str, object] | None = None
    status: int | None = None
    received: bytearray = field(default_factory=bytearray)
    seconds: float = 0.0
    error: Reason | None = None
    first: float | None = None
    tokens: int | None = None
    server: str | None = None
    begun: float = field(default_factory=time.monotonic, repr=False)
    read: int = field(default=0, repr=False)
    ends: float = field(default=math.inf, repr=False)
    _body: str | None = field(default=None, repr=False)

    def shorten(self) -> None:
        """Keep of a long body what a receipt keeps."""
        if len(self.received) > 4 * MAX_BODY:
            self._body = trim(self.received.decode("utf-8", "replace"))
            self.received.clear()

    def to_json(self) -> ExchangeRow:
        """Return the entry of a receipt; long bodies lose their middle."""
        return {
            "method": self.method,
            "path": self.path,
            "request": bounded(self.request),
            "status": self.status,
            "body": self._body or trim(self.received.decode("utf-8", "replace")),
            "seconds": round(self.seconds, 3),
            "first": None if self.first is None else round(self.first, 3),
            "tokens": self.tokens,
            "error": None if self.error is None else render(self.error),
        }


def trim(text: str, limit: int = MAX_BODY) -> str:
    """Return the text, its middle cut out where it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}… {len(text) - 2 * half} characters left out …{text[-half:]}"


def bounded(request: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Return the request, with the middle of its long texts cut out where it is longer than ``MAX_BODY``."""
    if request is None or len(json.dumps(request)) <= MAX_BODY:
        return request
    return {key: _shortened(value) for key, value in request.items()}


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return trim(value, 1000)
    if isinstance(value, Mapping):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(inner) for inner in value[:20]]
    return value


BOUNDARY = "importer-form-boundary"
T = TypeVar("T")


@frozen
class Client:
    """A client of ``base_url`` (``http://127.0.0.1:PORT``, with or without ``/v1``); ``time_limit`` in
    seconds.

    Each call appends its Exchange to ``log`` before it starts, then returns or raises an ExchangeError.
    ``key`` and ``headers`` go with every request, and what a server sends back of them into no log.
    Redirections are not followed, so that no other host gets them. No exchange goes on after ``deadline``,
    on the clock of ``time.monotonic``, nor without ``budget``; ``begins_within`` limits the seconds until an
    answer begins.
    """

    base_url: str
    time_limit: float = TIME_LIMIT
    key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    deadline: float = math.inf
    begins_within: float = math.inf
    budget: Budget = field(default_factory=Budget, repr=False, compare=False)
    _open: set[socket.socket] = field(default_factory=set, repr=False, compare=False)
    _left: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return key and values of headers, in the forms that are cut out of answers."""
        return secrets_of((self.key, *self.headers.values()))

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline."""
        return self.deadline - time.monotonic()

    @property
    def over(self) -> Reason | None:
        """Return why the run sends and reads nothing more; ``None`` while it goes on."""
        if self.seconds_left <= 0:
            return Reason(SilenceReason.TIME_IS_UP)
        return Reason(SilenceReason.BYTES_SPENT, limit=MAX_RUN) if self.budget.left <= 0 else None

    def hang_up(self) -> None:
        """End every exchange that is under way, and let none begin: for a server that importer does not
        stop.
        """
        self._left.set()
        for sock in tuple(self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def get(self, path: str, log: list[Exchange]) -> bytes:
        """Send GET and return the body of a 2xx answer."""
        return self._whole(Exchange("GET", path), log, bytes)

    def chat(self, body: Mapping[str, object], log: list[Exchange]) -> Reply:
        """POST /v1/chat/completions and return the answer; ``stream`` in ``body`` selects a streamed one."""
        exchange = Exchange("POST", "/v1/chat/completions", body)
        with self._recorded(exchange, log), closing(self._chunks(exchange)) as chunks:
            if not body.get("stream"):
                return from_whole(b"".join(chunks))
            reply = from_stream(chunks)
            exchange.tokens = reply.usage.completion
            return reply

    def leave(self, body: Mapping[str, object], log: list[Exchange]) -> None:
        """POST a streamed chat and hang up once the first bytes of its answer have arrived."""
        exchange = Exchange("POST", "/v1/chat/completions", {**body, "stream": True})
        with self._recorded(exchange, log), closing(self._chunks(exchange)) as chunks:
            next(chunks, None)

    def read(self, path: str, body: Mapping[str, object], log: list[Exchange]) -> bytes:
        """POST to another path and return the body of a 2xx answer."""
        return self._whole(Exchange("POST", path, body), log, bytes)

    def post(self, path: str, body: Mapping[str, object], log: list[Exchange]) -> Any:
        """POST to another path and return the JSON of a 2xx answer."""
        return self._whole(Exchange("POST", path, body), log, partial(_json, path))

    def upload(self, path: str, fields: Mapping[str, str], sound: bytes, log: list[Exchange]) -> Any:
        """POST a form with a WAV file and return the JSON of a 2xx answer; the log has the fields alone."""
        exchange = Exchange("POST", path, {**fields, "file": f"{len(sound)} bytes"})
        return self._whole(exchange, log, partial(_json, path), _form(fields, sound))

    def completion(self, body: Mapping[str, object], log: list[Exchange]) -> Reply:
        """POST /v1/completions, whole; the content of the reply is the text that follows the prompt."""
        return self._whole(Exchange("POST", "/v1/completions", body), log, from_completion)

    def _whole(
        self, exchange: Exchange, log: list[Exchange], of: Callable[[bytes], T], form: bytes | None = None
    ) -> T:
        """Return what ``of`` reads in the body of a 2xx answer; its error is one of the exchange."""
        with self._recorded(exchange, log):
            return of(b"".join(self._chunks(exchange, form)))

    def _chunks(self, exchange: Exchange, form: bytes | None = None) -> Generator[bytes, None, None]:
        """Send the request and yield the answer's bytes as they arrive; raises RequestRefused for an error
        status.
        """
        begun, deadline = time.monotonic(), min(exchange.ends, self.deadline)
        for tries in count():
            with self._sent(exchange, form) as connection, connection.getresponse() as response:
                exchange.status, exchange.server = response.status, response.headers.get("Server")
                body = _received(redacted(_pieces(response, exchange), self.secrets), exchange)
                if 200 <= response.status < 300:
                    yield from body
                    return
                says, waited = _sentence(b"".join(body)), time.monotonic() - begun
                pause = _pause(response, tries)
            if pause is None:
                raise RequestRefused(response.status, says)
            if waited + pause > min(PATIENCE, deadline - begun):
                raise Overloaded(response.status, says, waited)
            self._left.wait(pause)
            exchange.received.clear()
            exchange.begun, exchange.first, exchange.read = time.monotonic(), None, 0

    @contextmanager
    def _sent(self, exchange: Exchange, form: bytes | None = None) -> Iterator[http.client.HTTPConnection]:
        """Send the request and yield its connection."""
        parts = urlsplit(self.base_url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        payload = None if exchange.request is None else json.dumps(exchange.request).encode()
        headers = {"Content-Type": "application/json"} if payload else {}
        if form is not None:
            payload, headers = form, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        headers |= self.headers
        headers |= {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        limit = self._seconds(exchange)
        with closing(kind(parts.hostname or "", parts.port, timeout=limit)) as connection:
            connection.connect()
            sock = connection.sock
            self._open.add(sock)
            wire: Any = _Wire(sock, partial(self._seconds, exchange), partial(self._read, exchange))
            connection.sock = wire
            try:
                if self._left.is_set():
                    raise ConnectionAbortedError("this side has hung up")
                connection.request(exchange.method, _prefix(parts.path) + exchange.path, payload, headers)
                yield connection
            finally:
                self._open.discard(sock)

    def _seconds(self, exchange: Exchange) -> float:
        """Return the seconds that an exchange may take from now on; raises TimeoutError and RunOver."""
        over = self.over
        if over is not None:
            raise RunOver(over)
        begins = exchange.begun + self.begins_within if exchange.first is None else math.inf
        left = min(begins, exchange.ends, self.deadline) - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _read(self, exchange: Exchange, data: bytes) -> None:
        """Count what has come; raises ReplyError for an answer that is too large."""
        size = weight(data)
        self.budget.spend(size)
        exchange.read += size
        if exchange.read > MAX_ANSWER:
            raise ReplyError(Reason(ClientReason.TOO_LARGE, limit=MAX_ANSWER))

    @contextmanager
    def _recorded(self, exchange: Exchange, log: list[Exchange]) -> Iterator[None]:
        """Append the exchange to the log, measure its time, and turn each failure into an ExchangeError."""
        log.append(exchange)
        started = time.monotonic()
        exchange.ends = started + self.time_limit
        try:
            try:
                yield
            except TimeoutError:
                if (over := self.over) is not None:
                    raise RunOver(over) from None
                raise TimedOut(Reason(AnswerFailure.TIMED_OUT, seconds=time.monotonic() - started)) from None
            except (OSError, http.client.HTTPException) as error:
                raise ServerUnreachable(
                    Reason(AnswerFailure.UNREACHABLE, problem=str(error) or type(error).__name__)
                ) from None
            exchange.shorten()
        except ExchangeError as error:
            exchange.error = error.reason
            raise
        finally:
            exchange.seconds = time.monotonic() - started


class _Wire:
    """A socket as a connection uses it; each send and receive asks ``seconds`` first, and ``read`` after."""

    def __init__(
        self, sock: socket.socket, seconds: Callable[[], float], read: Callable[[bytes], None]
    ) -> None:
        self._sock, self._seconds, self._read = sock, seconds, read
        self.close = sock.close

    def sendall(self, data: bytes) -> None:
        """Send all of the data."""
        left = memoryview(data)
        while left:
            self._sock.settimeout(self._seconds())
            left = left[self._sock.send(left) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file of what comes."""
        return io.BufferedReader(_Receiving(self._sock, self._seconds, self._read))


class _Receiving(io.RawIOBase):
    """What comes from a socket, receive by receive."""

    def __init__(
        self, sock: socket.socket, seconds: Callable[[], float], read: Callable[[bytes], None]
    ) -> None:
        self._sock, self._seconds, self._read = sock, seconds, read
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open until it is closed itself

    def readable(self) -> bool:
        """Return ``True``."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive once; raises what ``seconds`` and ``read`` raise."""
        self._sock.settimeout(self._seconds())
        size = self._raw.readinto(buffer) or 0
        self._read(bytes(buffer[:size]))
        return size

    def close(self) -> None:
        """Close the file, and the socket where its connection has closed it."""
        self._raw.close()
        super().close()


def _pause(response: http.client.HTTPResponse, tries: int) -> float | None:
    """Return the seconds until the next try where a server refuses for load; ``None`` for other refusals."""
    named = response.headers.get("Retry-After", "")
    if response.status != OVERLOADED and not (response.status == UNAVAILABLE and named):
        return None
    return float(named) if named.isascii() and named.isdecimal() else PAUSES[min(tries, len(PAUSES) - 1)]


def _form(fields: Mapping[str, str], sound: bytes) -> bytes:
    """Return the body of a form with these fields and one WAV file."""
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; name="
    parts = [f'{head}"{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    file = f'{head}"file"; filename="tone.wav"\r\nContent-Type: audio/wav\r\n\r\n'.encode()
    return b"".join([*parts, file, sound, f"\r\n--{BOUNDARY}--\r\n".encode()])


def _json(path: str, body: bytes) -> Any:
    if (value := loaded(body, NO_JSON)) is NO_JSON:
        raise ReplyError(Reason(ClientReason.NOT_JSON, path=path))
    return value


def _pieces(response: http.client.HTTPResponse, exchange: Exchange) -> Iterator[bytes]:
    """Yield the pieces of a body as they come, and note when it begins."""
    while chunk := response.read1(65536):
        if exchange.first is None:
            exchange.first = time.monotonic() - exchange.begun
        yield chunk


def _received(body: Iterator[bytes], exchange: Exchange) -> Iterator[bytes]:
    """Yield the body, and keep it in the exchange."""
    for chunk in body:
        exchange.received += chunk
        yield chunk


def _prefix(path: str) -> str:
    """Return the part of the base URL's path before ``/v1``."""
    return path.rstrip("/").removesuffix("/v1")


def _sentence(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return error_message(loaded(text, text))
