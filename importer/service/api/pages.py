"""The files of the web page: one document, its styles, its modules and the icon."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter
from fastapi.responses import Response

from importer.errors import ServiceError
from importer.reports.html import CSS
from importer.service.api.etags import IfNoneMatch, same
from importer.service.security.middleware import HEADERS

router = APIRouter(tags=["page"], include_in_schema=False)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Beside the policy of every response: no text ever becomes markup or a script.
POLICY = f"{HEADERS['Content-Security-Policy']}; require-trusted-types-for 'script'; trusted-types 'none'"
START = "index.html"


@dataclass(frozen=True, slots=True)
class File:
    """One file of the page."""

    body: bytes
    media_type: str
    etag: str


def _file(name: str, body: bytes) -> File:
    media_type = f"{TYPES[PurePath(name).suffix]}; charset=utf-8"
    return File(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _all() -> Mapping[str, File]:
    """Return every file by its name; ``report.css`` is the style sheet of reports."""
    bodies = {"report.css": CSS.encode()}
    for entry in files("importer.service.page").iterdir():
        if PurePath(entry.name).suffix in TYPES:
            bodies[entry.name] = entry.read_bytes()
    return {name: _file(name, body) for name, body in bodies.items()}


FILES = _all()


@router.get("/")
def start(seen: IfNoneMatch = None) -> Response:
    """Return the page itself; where one is in it stands behind the #."""
    return _answer(FILES[START], seen)


@router.get("/page/{name}")
def part(name: str, seen: IfNoneMatch = None) -> Response:
    """Return a style, a module or the icon."""
    if name not in FILES:
        raise ServiceError("no-such-page", path=f"/page/{name}"[:200])
    return _answer(FILES[name], seen)


def _answer(file: File, seen: str | None) -> Response:
    headers = {"ETag": file.etag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
    if same(seen, file.etag):
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.media_type)
