"""A request's body, read before anything works with it: so many bytes, in so many seconds, so deep."""

from __future__ import annotations

import asyncio
import re
import time

from starlette.types import Message, Receive

from importer.errors import ServiceError

DEPTH = 64  # levels of JSON
LARGE = 50_000  # bytes from which on the loop does not wait for a look at the depth
TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


async def read(receive: Receive, most: int, seconds: float, *, json: bool) -> Receive:
    """A ``receive`` that has the whole body; raises ServiceError: "body-too-large", "too-slow",
    "bad-json", "bad-request".
    """
    body = await _whole(receive, most, seconds)
    if json and await _deep(body):
        raise ServiceError("bad-json", problem=f"it is nested deeper than {DEPTH} levels")
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
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


async def _deep(body: bytes) -> bool:
    return too_deep(body) if len(body) < LARGE else await asyncio.to_thread(too_deep, body)


def too_deep(body: bytes, most: int = DEPTH) -> bool:
    """Whether JSON is nested deeper than ``most``; what is no JSON may be told either."""
    depth = 0
    for found in TOKENS.finditer(body):
        token = found[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth > most:
                return True
        elif token in (b"]", b"}"):
            depth -= 1
    return False
