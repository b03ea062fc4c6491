"""Keys as LocalAI's clients send them, and as its galleries can."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security.api_key import APIKeyCookie, APIKeyHeader

from importer.service.api.dependencies import AtDesk
from importer.service.security.auth import SCHEMES, identify
from importer.service.security.grants import Caller

HEADERS = ("x-api-key", "xi-api-key")
COOKIE = "token"
OTHERS = (APIKeyHeader(name=HEADERS[1], auto_error=False), APIKeyCookie(name=COOKIE, auto_error=False))


def sent_key(request: Request) -> str | None:
    """``Authorization: Bearer KEY`` or the key alone, a header of its own, else the cookie ``token``."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, rest = header.partition(" ")
        return rest.strip() if scheme.lower() == "bearer" else header
    headers = (request.headers.get(name) for name in HEADERS)
    return next((key for key in headers if key is not None), request.cookies.get(COOKIE))


def needs(scope: str) -> Callable[..., Caller]:
    """Return a dependency: the caller, who has the scope."""

    def checked(
        request: Request,
        at: AtDesk,
        _bearer: Annotated[object, Depends(SCHEMES[0])],
        _header: Annotated[object, Depends(SCHEMES[1])],
        _other: Annotated[object, Depends(OTHERS[0])],
        _cookie: Annotated[object, Depends(OTHERS[1])],
    ) -> Caller:
        client = identify(request, at, sent_key(request))
        client.needs(scope)
        return client

    return checked


async def gallery_reader(request: Request, at: AtDesk) -> None:
    """May somebody read the gallery? LocalAI sends nothing but an address, whose user part may be the key.

    Raises ServiceError: "no-key", "wrong-scope", "too-many".
    """
    if at.settings.open_gallery:
        return
    key = sent_key(request)
    if key is None and at.settings.loopback:  # nothing is looked up
        return
    client = await run_in_threadpool(identify, request, at, None if key is None else _of_basic(key))
    client.needs("read")


def _of_basic(header: str) -> str:
    """Return the password of ``Basic …``, or the user's name where there is none; else what was said."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return header
    try:
        user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password or user


Reader = Annotated[Caller, Depends(needs("read"))]
Importer = Annotated[Caller, Depends(needs("import"))]
GalleryReader = Depends(gallery_reader)
