"""Checks of every request: API key or local user, id, host, the page that sent it, size; and the log."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from json import loads
from threading import Lock
from typing import Annotated, Any, cast

from anyio import to_thread
from fastapi import Depends, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from importer.errors import InternalError, ServiceError
from importer.frozen import frozen
from importer.service.desk import Desk
from importer.service.domain.grants import Caller
from importer.service.problems import answer
from importer.service.reads import reads
from importer.service.settings import Settings, is_loopback
from importer.service.telemetry import AnswerCut, Metrics, request_id
from importer.storage import keys
from importer.storage.actors import LOCAL
from importer.storage.audit import AuditContext
from importer.storage.database import fresh
from importer.version import __version__

DEPTH = 64  # levels of JSON
LARGE = 50_000  # bytes from which on the loop does not wait for a look at the depth
TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


async def read_body(
    receive: Receive, most: int, seconds: float, *, json: bool, typed: bool = True
) -> Receive:
    """Return a ``receive`` that has the whole body; raises ServiceError: "body-too-large", "too-slow",
    "bad-json", "bad-request".
    """
    body = await _whole(receive, most, seconds)
    if json and (fault := await _json_fault(body, json_fault if typed else depth_fault)) is not None:
        raise ServiceError("bad-json", problem=fault)
    delivered = False

    async def received() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


async def _whole(receive: Receive, most: int, seconds: float) -> bytes:
    deadline, parts, seen = time.monotonic() + seconds, [], 0
    while True:
        try:
            message = await asyncio.wait_for(receive(), deadline - time.monotonic())
        except TimeoutError:
            raise ServiceError("too-slow", limit=f"{seconds:g}") from None
        if message["type"] == "http.disconnect":
            raise ServiceError("bad-request", problem="the connection ended within the body")
        parts.append(message.get("body", b""))
        seen += len(parts[-1])
        if seen > most:
            raise ServiceError("body-too-large", limit=most)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _json_fault(body: bytes, check: Callable[[bytes], str | None]) -> str | None:
    return check(body) if len(body) < LARGE else await asyncio.to_thread(check, body)


def depth_fault(body: bytes) -> str | None:
    """Return whether a body without a type, which may be JSON, is nested too deep."""
    return f"nested deeper than {DEPTH} levels" if too_deep(body) else None


def json_fault(body: bytes) -> str | None:
    """Return what RFC 8259 has against a body that Python's reader accepts; ``None`` for any other fault."""
    if (deep := depth_fault(body)) is not None:
        return deep
    try:
        text = body.decode()
        loads(text, object_pairs_hook=_unique)
    except UnicodeDecodeError:
        return "not UTF-8 text"
    except _TwiceError as error:
        return f"the key {error.key[:200]!r} stands twice in one object"
    except (ValueError, RecursionError):  # the route's own reader names the fault and its place
        return "it begins with a byte order mark" if text.startswith("\ufeff") else None
    return None


class _TwiceError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    """Return an object's members; raises ValueError for a key that stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _TwiceError(next(key for key, count in counts.items() if count > 1))
    return found


def too_deep(body: bytes, most: int = DEPTH) -> bool:
    """Return whether JSON is nested deeper than ``most``; any answer for text that is not JSON."""
    depth = 0
    for match in TOKENS.finditer(body):
        token = match[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth > most:
                return True
        elif token in (b"]", b"}"):
            depth -= 1
    return False


MINUTE = 60.0
MOST = 10_000  # callers that are remembered; a full bucket need not be


class Limiter:
    """So many requests a minute for each caller, all at once or one by one; 0 sets no limit."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when

    def count(self, who: str) -> None:
        """Raise ServiceError("too-many") with the seconds until the next one."""
        if not self._most:
            return
        now, each = time.monotonic(), MINUTE / self._most
        with self._lock:
            left = self._now(who, now)
            if left < 1:
                raise ServiceError("too-many", seconds=math.ceil((1 - left) * each))
            self._left.pop(who, None)  # in the order of the last requests
            self._left[who] = (left - 1, now)
            while len(self._left) > MOST:
                del self._left[next(iter(self._left))]

    def _now(self, who: str, now: float) -> float:
        left, at = self._left.get(who, (float(self._most), now))
        return min(float(self._most), left + (now - at) * self._most / MINUTE)


LOG = logging.getLogger("importer.access")
FAULTS = logging.getLogger("importer.service")
SAFE = ("GET", "HEAD", "OPTIONS")
OWN = ("same-origin", "none")
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]*))(?::[0-9]*)?", re.ASCII)
SOON = 5  # seconds
HEALTH = "/healthz"
PROBES = (HEALTH, "/readyz")  # of a load balancer: any name
PLAIN = "identity"  # the only Content-Encoding of a body that is read
ALIVE = {"status": "ok", "version": __version__}
HEALTHY = JSONResponse(ALIVE)  # without a route, a thread or the database
LONGEST_ID = 128
LONGEST_ADDRESS = 8192
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Around the application: refuses in problem details, and logs what was answered."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, pass on, count and log one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        begun, ident = time.monotonic(), _id(headers)
        scope.setdefault("state", {})["id"] = ident
        request_id.set(ident)
        status, streamed, begun_answer = 500, False, False
        inner = _as_get(scope)

        async def sent(message: Message) -> None:
            nonlocal status, streamed, begun_answer
            if message["type"] == "http.response.start":
                begun_answer = True
                status, response_headers = message["status"], MutableHeaders(scope=message)
                streamed = response_headers.get("content-type", "").startswith("text/event-stream")
                _dress(response_headers, ident)
            await send(message)

        try:
            received = await self._received(scope, headers, receive)
        except ServiceError as refused:
            await answer(Request(scope), refused)(scope, receive, sent)
        else:
            app = HEALTHY if _is_health_check(scope) else self._app  # that one waits for nothing
            try:
                await app(inner, received, sent)
            except Exception as error:
                FAULTS.error("request %s failed", ident, exc_info=error)
                if begun_answer:
                    raise AnswerCut from None  # the server closes the connection
                fault = InternalError("internal", problem=type(error).__name__)
                await answer(Request(scope), fault)(scope, receive, sent)
        finally:
            seconds = time.monotonic() - begun
            self._metrics.answered(inner, status, seconds, streamed=streamed)
            _log(scope, status, seconds)

    async def _received(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Return the request with its whole body; raises ServiceError where it is refused."""
        if (refused := self._refusal(scope, headers)) is not None:
            raise refused
        if scope["method"] in SAFE:
            return receive
        sent = headers.get("content-type")
        json = (sent or "json").partition(";")[0].strip().lower().endswith("json")
        most, seconds = self._settings.largest_body, self._settings.body_seconds
        return await read_body(receive, most, seconds, json=json, typed=bool(sent))

    def _refusal(self, scope: Scope, headers: Headers) -> ServiceError | None:
        host = headers.get("host", "")
        probed = not self._settings.loopback and scope["path"] in PROBES  # its ``Host`` is an address
        if not (probed or self._is_own_name(host)):
            return ServiceError("foreign-host", host=host[:200])
        if self._is_full(scope):
            return ServiceError("too-many-connections", seconds=SOON)
        if scope["method"] not in SAFE and _foreign(headers, host):
            return ServiceError("foreign-page")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return ServiceError("bad-request", problem="the address holds a NUL")
        if len(scope["path"]) + len(scope["query_string"]) > LONGEST_ADDRESS:
            return ServiceError("bad-request", problem=f"the address is longer than {LONGEST_ADDRESS}")
        coding = headers.get("content-encoding", PLAIN).strip().lower()
        if scope["method"] not in SAFE and coding not in ("", PLAIN):
            kind = f"{coding[:100]} (Content-Encoding)"
            return ServiceError("wrong-type", type=kind, wanted="a body without one")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._settings.largest_body:
            return ServiceError("body-too-large", limit=self._settings.largest_body)
        return None

    def _is_full(self, scope: Scope) -> bool:
        """Return whether there are more connections than there may be; a health check is answered."""
        connections = getattr(scope["app"].state, "connections", ())
        return len(connections) > self._settings.connections and not _is_health_check(scope)

    def _is_own_name(self, host: str) -> bool:
        """Return whether a host is one of this server's: on loopback a foreign name may resolve to it."""
        name = _named(host)
        if name is None:
            return False
        if name.lower() in self._settings.names:
            return True
        if self._settings.loopback:
            return is_loopback(name)
        return not self._settings.allowed_host or name == self._settings.host


def _is_health_check(scope: Scope) -> bool:
    return scope["path"] == HEALTH and scope["method"] in ("GET", "HEAD")


def _as_get(scope: Scope) -> Scope:
    """Return the scope of HEAD as GET, whose body the server leaves out; a stream stays HEAD."""
    if scope["method"] != "HEAD" or scope["path"].endswith("/events"):
        return scope
    return {**scope, "method": "GET"}


def _named(host: str) -> str | None:
    """Return the name or address in a ``Host``, ``""`` for an empty one, ``None`` for an invalid one."""
    match = HOST.fullmatch(host)
    return None if match is None else match[1] or match[2]


def _foreign(headers: Headers, host: str) -> bool:
    """Return whether a browser sent the request from another site's page; requests with a key are exempt."""
    if "authorization" in headers or "x-api-key" in headers:
        return False
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return True
    return headers.get("sec-fetch-site", "none") not in OWN


def _id(headers: Headers) -> str:
    """Return the client's request id if it can be logged, else a new one."""
    sent = headers.get("x-request-id", "")
    fine = 0 < len(sent) <= LONGEST_ID and all(c.isalnum() or c in "-_." for c in sent) and sent.isascii()
    return sent if fine else fresh()


def _dress(headers: MutableHeaders, ident: str) -> None:
    """Set the headers of every response; without an ETag it is not cached."""
    headers["X-Request-Id"] = ident
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    if "etag" not in headers:
        headers.setdefault("Cache-Control", "no-store")


def _log(scope: Scope, status: int, seconds: float) -> None:
    client = scope.get("client")
    fields = {
        "method": scope["method"], "path": scope["path"], "status": status,
        "ms": round(seconds * 1000, 1), "who": scope.get("state", {}).get("caller"),
        "address": client[0] if client else None,
    }  # fmt: skip
    LOG.info("%s %s %s", scope["method"], scope["path"], status, extra={"fields": fields})


REFUSED = 60  # wrong keys a minute for one address


@frozen
class Limits:
    """Requests a minute: changes and other requests of each caller, refused keys of each address."""

    changes: Limiter
    reads: Limiter
    refused: Limiter


def limits(settings: Settings) -> Limits:
    """Return the limiters with the settings' rates."""
    return Limits(Limiter(settings.rate), Limiter(settings.reads), Limiter(REFUSED))


def sent_key(request: Request) -> str | None:
    """Return the key of a request: a bearer token, or the header X-API-Key; "" for another scheme."""
    header = request.headers.get("authorization")
    if header is None:
        return request.headers.get("x-api-key")
    scheme, _, rest = header.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else ""


async def caller(request: Request) -> Caller:
    """Return the caller; raises ServiceError: "no-key", "too-many"."""
    key, at = sent_key(request), cast(Desk, request.app.state.desk)
    if key is None and at.settings.loopback:  # nothing is looked up
        return identify(request, at, key)
    return await to_thread.run_sync(identify, request, at, key, limiter=reads())


def identify(request: Request, at: Desk, sent: str | None) -> Caller:
    """Return the caller with this key; raises ServiceError: "no-key", "too-many"."""
    limited = cast(Limits, request.app.state.limits)
    if sent is None and at.settings.loopback:
        client, ident = Caller(LOCAL, frozenset(keys.SCOPES)), LOCAL
    else:
        with at.database.reading() as connection:
            key = keys.find(connection, sent or "")
        if key is None:
            limited.refused.count(address(request))
            raise ServiceError("no-key", sent=sent is not None)
        client, ident = Caller(key.name, key.scopes), key.id
    (limited.reads if request.method in SAFE else limited.changes).count(ident)
    request.state.caller = client.name
    return client


def needs(scope: str) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that yields the caller and requires a scope."""

    async def checked(request: Request) -> Caller:  # in the loop: each other function costs a thread
        client = await caller(request)
        client.needs(scope)
        return client

    return checked


Reader = Annotated[Caller, Depends(needs("read"))]
Importer = Annotated[Caller, Depends(needs("import"))]
Approver = Annotated[Caller, Depends(needs("approve"))]


def act(request: Request, who: Caller, action: str, why: str | None = None) -> AuditContext:
    """Return the audit context of a caller's action."""
    return AuditContext(who.name, action, why, getattr(request.state, "id", None), address(request))


def address(request: Request) -> str:
    """Return the address of the client."""
    return "" if request.client is None else request.client.host
