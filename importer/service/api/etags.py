"""ETags of documents: the version's number, so that every change makes a new one, reviews included."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header

from importer.errors import ServiceError

MOST = 2**31 - 1  # the largest number that a version can have in either database
TAG = re.compile(r'(?:W/)?"([0-9]{1,9})"')
IfMatch = Annotated[
    str | None, Header(alias="If-Match", max_length=1000, description='the ETag, such as "3"')
]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", max_length=1000)]


def etag(version: int) -> str:
    """Return a version's ETag."""
    return f'"{version}"'


def numbers(header: str | None) -> list[int] | None:
    """Return the versions that If-Match names; ``None`` where it is absent, or ``*``.

    A weak tag or one of another form matches nothing.
    """
    if header is None or header.strip() == "*":
        return None
    tags = [tag.strip() for tag in header.split(",")]
    return [int(match[1]) for tag in tags if (match := TAG.fullmatch(tag)) and not tag.startswith("W/")]


def needed(header: str | None, name: str) -> list[int] | None:
    """Return the versions that If-Match names; raises ServiceError("precondition-required") without one."""
    if header is None:
        raise ServiceError("precondition-required", name=name)
    return numbers(header)


def seen(header: str | None, digest: str | None, name: str) -> list[int] | None:
    """Return the versions that If-Match names; ``None`` where the digest alone says what was seen.

    Raises ServiceError("digest-required") without either; ``*`` names nothing that was seen.
    """
    expected = numbers(header)
    if expected is None and digest is None:
        raise ServiceError("digest-required", name=name)
    return expected


def same(header: str | None, tag: str) -> bool:
    """Return whether If-None-Match names the tag."""
    if header is None:
        return False
    return header.strip() == "*" or tag in {t.strip().removeprefix("W/") for t in header.split(",")}
