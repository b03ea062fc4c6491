"""GET requests to the Hub, with the Hub client's session and token, checked redirects, retries and limits."""

from __future__ import annotations

import logging
import math
import re
import time
import zlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from importer.errors import HubError, Setting, UsageError
from importer.frozen import frozen
from importer.hub import endpoint, rate_limit
from importer.hub.route import open_session, route_closed, route_refused
from importer.reasons import Reason, ReasonKind
from importer.version import __version__

HEAD_READS = 1000  # of the socket for a response's headers: 64 KiB each, interim responses included
SLACK = 64 * 1024  # bytes that gzip may add to incompressible data
LONGEST_MESSAGE = 300  # characters that are shown of a server's message
SECRET = re.compile(r"hf_\w+")
GZIP = ("gzip", "x-gzip")
PLAIN = ("", "identity")
HOPS = 4
REDIRECTS = {301, 302, 303, 307, 308}
EXHAUSTED = re.compile(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d{1,9})\b")  # RateLimit: "api";r=0;t=55
HOPELESS = {"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol", "LocalProtocolError"}
CUT = {"RemoteProtocolError", "ReadError"}
log = logging.getLogger("importer.hub")


@frozen
class Deadline:
    """Limits of one request in seconds, and its number of tries.

    ``connect``  to connect. ``read``  between two reads. ``whole``  for all tries and redirects together.
    ``waits``    for all pauses between tries; ``pause`` is the first of them.
    """

    connect: float = 10.0
    read: float = 20.0
    whole: float = 120.0
    waits: float = 60.0
    pause: float = 0.2
    tries: int = 5


PATIENCE = Deadline()


class Clock:
    """The remainder of ``patience.whole``; pauses between tries do not count."""

    def __init__(self, patience: Deadline) -> None:
        self.patience = patience
        self._end = time.monotonic() + patience.whole
        self._reads = 0

    @property
    def left(self) -> float:
        """Return the remaining seconds; zero or less where the time is over."""
        return self._end - time.monotonic()

    def rest(self, seconds: float) -> None:
        """Sleep before the next try."""
        time.sleep(seconds)
        self._end += seconds

    def head(self) -> None:
        """Allow ``HEAD_READS`` reads for the headers of the next response."""
        self._reads = HEAD_READS

    def body(self) -> None:
        """Allow any number of reads for the body; its limit is in bytes."""
        self._reads = -1

    def read(self) -> None:
        """Count one more read.

        Raises TimeoutError where the reads or the seconds are used up.
        """
        if self._reads == 0 or self.left <= 0:
            self._end = min(self._end, time.monotonic())
            raise TimeoutError
        self._reads -= 1


class Timeout:
    """A timeout that shrinks: at most ``seconds``, and at most the remainder of the clock.

    The HTTP library passes it to ``socket.settimeout`` before each read, also of headers and interim
    responses. ``settimeout`` accepts any object with ``__index__``: whole seconds.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def __index__(self) -> int:
        self._clock.read()
        return max(1, math.ceil(min(self._seconds, self._clock.left)))


class BodyReason(ReasonKind):
    """Reasons why a body cannot be used."""

    DAMAGED = "it is packed in a way that cannot be read"
    CUT = "the answer was cut off"


class TooLarge(Exception):
    """The body is longer than the limit."""


class UnreadableBody(Exception):
    """The body contradicts its headers; ``cut`` where it ends too early."""

    def __init__(self, kind: BodyReason, **fields: object) -> None:
        super().__init__()
        self.reason, self.cut = Reason(kind, **fields), kind is BodyReason.CUT


def read(chunks: Iterable[bytes], coding: str, limit: int, clock: Clock) -> bytes:
    """Return the decoded body of at most ``limit`` bytes; ``chunks`` are the bytes of the wire.

    Raises TooLarge, UnreadableBody, and TimeoutError where the clock has run out.
    """
    if coding not in (*PLAIN, *GZIP):
        raise UnreadableBody(BodyReason.DAMAGED)
    unpack = zlib.decompressobj(wbits=31) if coding in GZIP else None
    body, arrived = bytearray(), 0
    for chunk in chunks:
        clock.read()
        arrived += len(chunk)
        if arrived > limit + SLACK:
            raise TooLarge
        try:
            body += chunk if unpack is None else unpack.decompress(chunk, limit + 1 - len(body))
        except zlib.error:
            raise UnreadableBody(BodyReason.DAMAGED) from None
        if len(body) > limit:
            raise TooLarge
    if unpack is not None and not unpack.eof:
        raise UnreadableBody(BodyReason.CUT)
    return bytes(body)


class SaidReason(ReasonKind):
    """The server's own message in a sentence."""

    MESSAGE = ", with the message {text!r}"


class WaitReason(ReasonKind):
    """Reasons with the wait before the next try."""

    SECONDS = "{seconds:.0f} seconds"
    UNKNOWN = "a few minutes"


class ExchangeReason(ReasonKind):
    """Failures below HTTP, or between two responses."""

    NO_CONNECTION = "{says}"
    NOT_CONNECTED = "no connection within {seconds:.0f} s"
    SILENT = "no whole answer within {seconds:.0f} s"
    FAILED = "the exchange failed ({name})"
    SHORT = "{have} of {size} bytes arrived"
    HOPS = "it was redirected more than {hops} times"


@frozen
class HubResponse:
    """The final response: never a redirect, a 429 or a 5xx. Header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    had_token: bool

    @property
    def said(self) -> Reason | str:
        """Return the server's own message for a sentence, without tokens; empty without one."""
        text = SECRET.sub("…", self.headers.get("x-error-message", "").strip())
        return Reason(SaidReason.MESSAGE, text=text[:LONGEST_MESSAGE]) if text else ""


class _Broken(Exception):
    """The exchange failed below HTTP; ``hopeless`` to try again."""

    def __init__(self, error: HubError, *, hopeless: bool = False) -> None:
        super().__init__()
        self.error, self.hopeless = error, hopeless


def get(url: str, *, limit: int, size: int | None = None, span: tuple[int, int] | None = None) -> HubResponse:
    """Send a GET request to the Hub; ``limit`` and the expected ``size`` are bytes of the decoded body.

    ``span`` requests these bytes only, the last one included; only status 206 has a body then. Within
    ``pacing.under`` the request waits for the Hub's limits.
    Raises HubError (rate-limited, server, network, refused-host, bad-token, bad-answer) and TooLarge.
    """
    paced = rate_limit.current()
    if paced is None:
        return _get(url, limit, size, span, None)
    budget, progress = paced
    return budget.spend(url, lambda: _get(url, limit, size, span, budget), progress)


def _get(
    url: str, limit: int, size: int | None, span: tuple[int, int] | None, budget: rate_limit.Budget | None
) -> HubResponse:
    waited, clock = 0.0, Clock(PATIENCE)
    tries = clock.patience.tries
    for attempt in range(1, tries + 1):
        pause = clock.patience.pause * 2 ** (attempt - 1)
        try:
            answer = _follow(url, limit, size, span, clock)
        except _Broken as error:
            if error.hopeless or attempt == tries:
                raise error.error from None
        else:
            if budget is not None:
                budget.heard(url, answer.headers)
            if (closed := route_refused(answer.url, answer.status)) is not None:
                raise closed
            if answer.status not in {408, 429} and answer.status < 500:
                return answer
            requested = _requested_pause(answer.headers)
            if budget is not None and answer.status == 429 and requested is not None:
                raise _gave_up(answer, attempt, requested)  # all requests of the budget wait
            pause = pause if requested is None else requested
            if attempt == tries or waited + pause > clock.patience.waits:
                raise _gave_up(answer, attempt, requested)
        log.info("waiting %.1f s before the next request to %s", pause, endpoint.plain(url))
        clock.rest(pause)
        waited += pause
    raise AssertionError("the last try returns or raises")


def _gave_up(answer: HubResponse, tries: int, requested: float | None) -> HubError:
    if answer.status == 429:
        return HubError("rate-limited", wait=wait_for(requested), seconds=requested, said=answer.said)
    url = endpoint.plain(answer.url)
    return HubError("server", status=answer.status, url=url, tries=tries, said=answer.said)


def wait_for(seconds: float | None) -> Reason:
    """Return the wait that the server demands, or the reason for an unknown wait."""
    return Reason(WaitReason.SECONDS, seconds=seconds) if seconds else Reason(WaitReason.UNKNOWN)


def _requested_pause(headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds: from ``RateLimit`` when a quota is used up, else from ``Retry-After``."""
    used_up = [int(seconds) for seconds in EXHAUSTED.findall(headers.get("ratelimit", ""))]
    if used_up:
        return float(max(used_up))
    after = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", after):
        return float(after)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _follow(
    url: str, limit: int, size: int | None, span: tuple[int, int] | None, clock: Clock
) -> HubResponse:
    """Return the response of one try, through checked redirects."""
    for _ in range(HOPS + 1):
        answer = _exchange(url, limit, size, span, clock)
        target = answer.headers.get("location")
        if answer.status not in REDIRECTS or target is None:
            return answer
        url = endpoint.redirected(url, target)
    raise unusable(url, Reason(ExchangeReason.HOPS, hops=HOPS))


def _exchange(
    url: str, limit: int, size: int | None, span: tuple[int, int] | None, clock: Clock
) -> HubResponse:
    headers = _headers(url)
    if span is not None:
        headers |= {"range": f"bytes={span[0]}-{span[1]}", "accept-encoding": "identity"}
    connect, between = (Timeout(clock, most) for most in (clock.patience.connect, clock.patience.read))
    timeout: Any = (connect, between, between, clock.patience.connect)  # connect, read, write, pool
    clock.head()
    stream = open_session().stream("GET", url, headers=headers, follow_redirects=False, timeout=timeout)
    try:
        with stream as response:
            clock.body()
            token = headers.get("authorization", "\n").removeprefix("Bearer ")  # no header has a newline
            response_headers = {n.lower(): v.replace(token, "…") for n, v in response.headers.items()}
            coding = response_headers.get("content-encoding", "").strip().lower()
            good = response.status_code == (206 if span else 200)
            body = read(response.iter_raw(), coding, limit, clock) if good else b""
    except UnreadableBody as error:
        raise _Broken(unusable(url, error.reason), hopeless=not error.cut) from None
    except (TimeoutError, http_error()) as error:
        raise _broken(error, clock, url) from None
    if good and size is not None and len(body) != size:
        raise _Broken(unusable(url, Reason(ExchangeReason.SHORT, have=len(body), size=size)))
    return HubResponse(url, response.status_code, response_headers, body, "authorization" in headers)


def _broken(error: Exception, clock: Clock, url: str) -> _Broken:
    """Return the failure by its kind: an exception's own text may hold headers."""
    name, patience = type(error).__name__, clock.patience
    if clock.left <= 0:
        return _Broken(_network(url, Reason(ExchangeReason.SILENT, seconds=patience.whole)), hopeless=True)
    if name in {"ConnectError", "ProxyError"}:
        reason = Reason(ExchangeReason.NO_CONNECTION, says=str(error)[:LONGEST_MESSAGE] or "no connection")
    elif name == "ConnectTimeout":
        reason = Reason(ExchangeReason.NOT_CONNECTED, seconds=patience.connect)
    elif name.endswith("Timeout"):
        reason = Reason(ExchangeReason.SILENT, seconds=patience.read)
    elif name in CUT:
        return _Broken(unusable(url, Reason(BodyReason.CUT)))
    else:
        reason = Reason(ExchangeReason.FAILED, name=name)
    return _Broken(route_closed(url, error, reason) or _network(url, reason), hopeless=name in HOPELESS)


def _network(url: str, problem: Reason) -> HubError:
    return HubError("network", host=urlsplit(endpoint.plain(url)).netloc, problem=problem)


def unusable(url: str, problem: Reason) -> HubError:
    """Return the error of an answer that cannot be used."""
    return HubError("bad-answer", url=endpoint.plain(url), problem=problem)


def http_error() -> type[Exception]:
    """Return the root of the HTTP library's errors: httpx's or httpx2's, as the Hub client uses."""
    from huggingface_hub.errors import HfHubHTTPError

    base: type[Exception] = HfHubHTTPError.__bases__[0]
    return base


def _headers(url: str) -> dict[str, str]:
    """Return the user agent and, for the endpoint's own host only, the token.

    ``build_hf_headers`` does the same, but first requests a list of agents from the Hub.
    """
    headers = {"user-agent": f"importer/{__version__}", "accept-encoding": "gzip"}
    token = _token() if endpoint.may_carry_token(url) else None
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return headers


def _token() -> str | None:
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    try:
        token = get_token()
    except Exception:  # a refresh or an exchange failed; the client's text may hold the token
        raise HubError("bad-token", said="") from None
    if token is not None and not (token.isascii() and token.isprintable()):
        raise HubError("bad-token", said="")
    return token


def check_endpoint() -> str:
    """Return the endpoint.

    Raises UsageError("bad-value") where ``HF_ENDPOINT`` is no URL.
    """
    url = endpoint.endpoint()
    try:
        endpoint.origin(url)
    except ValueError as error:
        raise UsageError("bad-value", setting=Setting.ENDPOINT, value=url, problem=error) from None
    return url
