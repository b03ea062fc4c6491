"""The web page as its build left it, and the page of the API."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response

from importer.errors import ServiceError
from importer.frozen import frozen
from importer.reports import html
from importer.service.http.headers import IfNoneMatch, same_etag
from importer.service.security import HEADERS

router = APIRouter(tags=["page"], include_in_schema=False)
TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml",
    ".txt": "text/plain",
}  # fmt: skip
# Beside the policy of every response: no text ever becomes markup or a script.
POLICY = f"{HEADERS['Content-Security-Policy']}; require-trusted-types-for 'script'; trusted-types 'none'"
START = "index.html"
HASHED = re.compile(r".+-[A-Z0-9]{8}\.(js|css)")  # another content has another name
FOREVER, ASKED = "public, max-age=31536000, immutable", "no-cache"


@frozen
class File:
    """One file of the page."""

    body: bytes
    media_type: str
    etag: str
    cache: str


def _file(name: str, body: bytes) -> File:
    media_type = f"{TYPES[PurePath(name).suffix]}; charset=utf-8"
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return File(body, media_type, etag, FOREVER if HASHED.fullmatch(name) else ASKED)


def _all() -> Mapping[str, File]:
    """Return every file by its name; none in a checkout where the page was not built."""
    built = files("importer.service").joinpath("web", "built")
    found = built.iterdir() if built.is_dir() else ()
    return {
        one.name: _file(one.name, one.read_bytes()) for one in found if PurePath(one.name).suffix in TYPES
    }


FILES = _all()


@router.get("/")
def start(seen: IfNoneMatch = None) -> Response:
    """Return the page itself; where one is in it stands behind the #."""
    if START not in FILES:
        raise ServiceError("page-not-built")
    return _answer(FILES[START], seen)


@router.get("/docs")
def api(request: Request) -> Response:
    """Return the API for people: every route with its parameters and answers."""
    headers = {"Content-Security-Policy": f"{html.POLICY}; frame-ancestors 'none'"}
    return Response(described(request.app), headers=headers, media_type="text/html; charset=utf-8")


@lru_cache(maxsize=1)
def described(app: FastAPI) -> str:
    """Return the page of the API, written once: it takes a fifth of a second, and anybody may ask for it."""
    return html.api(app.openapi())


@router.get("/page/{name}")
def part(name: str, seen: IfNoneMatch = None) -> Response:
    """Return a style, a script, the licences of others or the icon."""
    if name not in FILES:
        raise ServiceError("no-such-page", path=f"/page/{name}"[:200])
    return _answer(FILES[name], seen)


def _answer(file: File, seen: str | None) -> Response:
    headers = {"ETag": file.etag, "Cache-Control": file.cache, "Content-Security-Policy": POLICY}
    if same_etag(seen, file.etag):
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.media_type)
