"""What every request passes: its id, the host it was meant for, the page it comes from, its size."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from importer.errors import ServiceError
from importer.gallery.ids import fresh
from importer.service.problems import answer
from importer.service.settings import Settings, is_loopback

LOG = logging.getLogger("importer.access")
SAFE = ("GET", "HEAD", "OPTIONS")
OWN = ("same-origin", "none")
LONGEST_ID = 128
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """Around the application: refuses in problem details, and logs what was answered."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, begun = Headers(scope=scope), time.monotonic()
        ident = _id(headers)
        scope.setdefault("state", {})["id"] = ident
        status = 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                said = MutableHeaders(scope=message)
                said["X-Request-Id"] = ident
                for name, value in HEADERS.items():
                    said.setdefault(name, value)
            await send(message)

        try:
            refused = self._refusal(scope, headers)
            if refused is not None:
                await answer(Request(scope), refused)(scope, receive, sent)
            else:
                await self._app(scope, _counted(receive, self._settings.largest_body), sent)
        finally:
            _log(scope, ident, status, time.monotonic() - begun)

    def _refusal(self, scope: Scope, headers: Headers) -> ServiceError | None:
        host = headers.get("host", "")
        if not self._ours(host):
            return ServiceError("foreign-host", host=host[:200])
        if scope["method"] not in SAFE and _foreign(headers, host):
            return ServiceError("foreign-page")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return ServiceError("bad-request", problem="the address holds a NUL")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._settings.largest_body:
            return self._too_large()
        return None

    def _ours(self, host: str) -> bool:
        """Whether the name is one of this server's: on loopback a page's own name may lead here, too."""
        name = (urlsplit(f"//{host}").hostname or "") if host.isprintable() else ""
        if name.lower() in self._settings.names:
            return True
        if self._settings.loopback:
            return is_loopback(name)
        return not self._settings.allowed_host or name == self._settings.host

    def _too_large(self) -> ServiceError:
        return ServiceError("body-too-large", limit=self._settings.largest_body)


def _foreign(headers: Headers, host: str) -> bool:
    """Whether a browser says that the request comes of another site's page; a key is no page's to send."""
    if "authorization" in headers or "x-api-key" in headers:
        return False
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        return True
    return headers.get("sec-fetch-site", "none") not in OWN


def _id(headers: Headers) -> str:
    """The caller's own id where it can be logged, else a new one."""
    said = headers.get("x-request-id", "")
    fine = 0 < len(said) <= LONGEST_ID and all(c.isalnum() or c in "-_." for c in said) and said.isascii()
    return said if fine else fresh()


def _counted(receive: Receive, limit: int) -> Receive:
    """Raises HTTPException once more bytes have arrived, whatever was announced."""
    seen = 0

    async def received() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(413)
        return message

    return received


def _log(scope: Scope, ident: str, status: int, seconds: float) -> None:
    said = {
        "request": ident, "method": scope["method"], "path": scope["path"], "status": status,
        "ms": round(seconds * 1000, 1), "who": scope.get("state", {}).get("caller"),
    }  # fmt: skip
    LOG.info("%s %s %s", scope["method"], scope["path"], status, extra={"said": said})
