"""One GET: the Hub client's session and token, every redirect checked, retried as the server asks."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from importer import __version__
from importer.errors import HubError, Setting, UsageError
from importer.hub import hosts

if TYPE_CHECKING:
    from httpx2 import Response

TRIES = 5
FIRST_PAUSE = 0.2  # seconds, doubled with each try
LONGEST_WAIT = 60.0  # seconds of pauses for one request, all together
CONNECT, READ, WHOLE = 10.0, 20.0, 120.0  # seconds: to connect, between two reads, for one answer
HOPS = 4
REDIRECTS = {301, 302, 303, 307, 308}
EXHAUSTED = re.compile(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d{1,9})\b")  # RateLimit: "api";r=0;t=55
HOPELESS = {"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol", "LocalProtocolError"}

CUT = {"RemoteProtocolError", "ReadError", "DecodingError"}

log = logging.getLogger("importer.hub")
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said in the end: never a redirect, a 429 or a 5xx. Header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    had_token: bool


class TooLarge(Exception):
    """The body is longer than the limit."""


class _Broken(Exception):
    """The exchange failed below HTTP: ``cut`` after it had begun, ``hopeless`` to try again."""

    def __init__(self, problem: str, *, cut: bool = False, hopeless: bool = False) -> None:
        super().__init__(problem)
        self.cut, self.hopeless = cut, hopeless


def get(url: str, *, limit: int, size: int | None = None, span: tuple[int, int] | None = None) -> Answer:
    """GET a URL of the Hub; ``limit`` and the expected ``size`` are bytes of the decoded body.

    ``span`` asks for these bytes only, the last one included; then only an answer with status 206 has a body.
    Raises HubError (rate-limited, server, network, refused-host, bad-token, bad-answer) and TooLarge.
    """
    waited = 0.0
    for tried in range(1, TRIES + 1):
        pause = FIRST_PAUSE * 2 ** (tried - 1)
        try:
            answer = _follow(url, limit, size, span)
        except _Broken as error:
            if error.hopeless or tried == TRIES:
                raise _lost(url, error) from None
        else:
            if answer.status not in {408, 429} and answer.status < 500:
                return answer
            asked = _asked_pause(answer.headers)
            pause = pause if asked is None else asked
            if tried == TRIES or waited + pause > LONGEST_WAIT:
                raise _gave_up(answer, tried, asked)
        log.info("waiting %.1f s before asking %s again", pause, hosts.plain(url))
        time.sleep(pause)
        waited += pause
    raise AssertionError("the last try returns or raises")


def _lost(url: str, error: _Broken) -> HubError:
    if error.cut:
        return HubError("bad-answer", url=hosts.plain(url), problem=error)
    return HubError("network", host=urlsplit(hosts.plain(url)).netloc, problem=error)


def _gave_up(answer: Answer, tries: int, asked: float | None) -> HubError:
    if answer.status == 429:
        wait = f"{asked:.0f} seconds" if asked else "a few minutes"
        return HubError("rate-limited", wait=wait, seconds=asked)
    return HubError("server", status=answer.status, url=hosts.plain(answer.url), tries=tries)


def _asked_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks for: ``RateLimit`` when a quota is used up, else ``Retry-After``."""
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


def _follow(url: str, limit: int, size: int | None, span: tuple[int, int] | None) -> Answer:
    """One try, through checked redirects."""
    for _ in range(HOPS + 1):
        answer = _exchange(url, limit, size, span)
        target = answer.headers.get("location")
        if answer.status not in REDIRECTS or target is None:
            return answer
        url = hosts.redirected(url, target)
    raise HubError("bad-answer", url=hosts.plain(url), problem=f"it was redirected more than {HOPS} times")


def _exchange(url: str, limit: int, size: int | None, span: tuple[int, int] | None) -> Answer:
    from huggingface_hub import get_session

    headers = _headers(url)
    if span is not None:
        headers |= {"range": f"bytes={span[0]}-{span[1]}", "accept-encoding": "identity"}
    timeout: Any = (CONNECT, READ, READ, CONNECT)  # in the order of httpx: connect, read, write, pool
    stream = get_session().stream("GET", url, headers=headers, follow_redirects=False, timeout=timeout)
    try:
        with stream as response:
            body = _read(response, limit, size) if response.status_code == (206 if span else 200) else b""
            found = {name.lower(): value for name, value in response.headers.items()}
            return Answer(url, response.status_code, found, body, "authorization" in headers)
    except http_error() as error:
        name = type(error).__name__
        raise _Broken(_problem(error), cut=name in CUT, hopeless=name in HOPELESS) from None


def http_error() -> type[Exception]:
    """The root of the HTTP library's errors: httpx's or httpx2's, whichever the Hub client stands on."""
    from huggingface_hub.errors import HfHubHTTPError

    base: type[Exception] = HfHubHTTPError.__bases__[0]
    return base


def _read(response: Response, limit: int, size: int | None) -> bytes:
    """The body of a good answer, counted while it arrives."""
    body, end = bytearray(), time.monotonic() + WHOLE
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > limit:
            raise TooLarge
        if time.monotonic() > end:
            raise _Broken(f"the answer took longer than {WHOLE:.0f} s", hopeless=True)
    if size is not None and len(body) != size:
        raise _Broken(f"{len(body)} of {size} bytes arrived", cut=True)
    return bytes(body)


def _headers(url: str) -> dict[str, str]:
    """User agent and, for the endpoint's own host only, the token.

    ``build_hf_headers`` would do the same, but asks the Hub for a list of agents first: one more request.
    """
    headers = {"user-agent": f"importer/{__version__}", "accept-encoding": "gzip"}
    token = _token() if hosts.may_carry_token(url) else None
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return headers


def _token() -> str | None:
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    try:
        token = get_token()
    except Exception:  # refreshing or exchanging it failed; the client's words may hold the token
        raise HubError("bad-token") from None
    if token is not None and not (token.isascii() and token.isprintable()):
        raise HubError("bad-token")
    return token


def _problem(error: Exception) -> str:
    """A sentence of ours for the kinds that are common; an exception's own words may hold headers."""
    name = type(error).__name__
    if name == "ConnectError":
        return str(error) or "no connection"
    if name == "ConnectTimeout":
        return f"no connection within {CONNECT:.0f} s"
    if name.endswith("Timeout"):
        return f"no answer within {READ:.0f} s"
    if name in CUT:
        return "the answer was cut off"
    return f"the exchange failed ({name})"


def check_endpoint() -> str:
    """The endpoint. Raises UsageError where ``HF_ENDPOINT`` is no URL."""
    url = hosts.endpoint()
    try:
        hosts.origin(url)
    except ValueError as error:
        raise UsageError("bad-value", setting=Setting.ENDPOINT, value=url, problem=error) from None
    return url


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``work`` on all items at once, results in order; the first error is raised when all have ended.

    The threads are daemons, so that Ctrl-C need not wait for a server that does not answer.
    """
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}

    def run(place: int) -> None:
        try:
            results[place] = work(items[place])
        except BaseException as error:
            errors[place] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(items))]
