"""API keys in the places where LocalAI's clients and galleries send them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security.api_key import APIKeyCookie, APIKeyHeader

from importer.service.desk import AtDesk
from importer.service.domain.grants import Caller
from importer.service.security.auth import SCHEMES, identify

HEADERS = ("x-api-key", "xi-api-key")
COOKIE = "token"
OTHERS = (APIKeyHeader(name=HEADERS[1], auto_error=False), APIKeyCookie(name=COOKIE, auto_error=False))


def sent_key(request: Request) -> str | None:
    """Return the key of a request: ``Authorization``, with or without ``Bearer``, a header of its own, or the
    cookie ``token``.
    """
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, rest = header.partition(" ")
        return rest.strip() if scheme.lower() == "bearer" else header
    headers = (request.headers.get(name) for name in HEADERS)
    return next((key for key in headers if key is not None), request.cookies.get(COOKIE))


def needs(scope: str) -> Callable[..., Caller]:
    """Return a dependency that yields the caller and requires a scope."""

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
    """Check that the gallery may be read; LocalAI sends only an address, whose user part may be the key.

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
    """Return the password of ``Basic …``, the user's name without one, or the value of another scheme."""
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
