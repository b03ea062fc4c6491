"""ETags of documents, in the headers of requests that name one."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, Request

from importer.errors import ServiceError

MOST = 2**31 - 1  # the largest number that a version can have in either database
TAG = re.compile(r'"(0|[1-9][0-9]{0,8})"')
Line = Annotated[str | None, Header(alias="If-Match", max_length=1000, description='the ETag, such as "3"')]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=1000, description="the ETag of your copy: unchanged, it is 304"),
]


async def if_match(request: Request, line: Line = None) -> str | None:
    """Return the header with all of its lines, which are one list."""
    return None if line is None else ", ".join(request.headers.getlist("if-match"))


IfMatch = Annotated[str | None, Depends(if_match)]


def etag(version: int) -> str:
    """Return a version's ETag."""
    return f'"{version}"'


def etag_numbers(header: str | None) -> list[int] | None:
    """Return the versions that If-Match names; ``None`` where it is absent, or ``*``.

    A weak tag or one of another form matches nothing.
    """
    if header is None or header.strip() == "*":
        return None
    return [int(match[1]) for tag in header.split(",") if (match := TAG.fullmatch(tag.strip()))]


def needed_versions(header: str | None, name: str) -> list[int] | None:
    """Return the versions that If-Match names; raises ServiceError("precondition-required") without one."""
    if header is None:
        raise ServiceError("precondition-required", name=name)
    return etag_numbers(header)


def seen_versions(header: str | None, digest: str | None, name: str) -> list[int] | None:
    """Return the version that If-Match names; ``None`` where the digest alone names what was seen.

    Raises ServiceError("digest-required") without either, and for any other header than one strong tag: of
    several versions, or of any, nobody has seen the one that is there.
    """
    if header is None and digest is not None:
        return None
    if (match := TAG.fullmatch((header or "").strip())) is None:
        raise ServiceError("digest-required", name=name)
    return [int(match[1])]


def same_etag(header: str | None, tag: str) -> bool:
    """Return whether If-None-Match names the tag."""
    if header is None:
        return False
    return header.strip() == "*" or tag in {t.strip().removeprefix("W/") for t in header.split(",")}
