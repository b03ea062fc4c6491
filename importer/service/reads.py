"""Routes that read: each function of a GET runs in one of a few threads.

Reading holds the interpreter most of the time: with more threads none is done earlier, and all are done late.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from fastapi.routing import APIRoute

THREADS = 3
_limiter: RunVar[CapacityLimiter] = RunVar("reads")


def reads() -> CapacityLimiter:
    """Return the limiter of the threads that read, of this event loop."""
    try:
        return _limiter.get()
    except LookupError:
        _limiter.set(limiter := CapacityLimiter(THREADS))
        return limiter


class Reads(APIRoute):
    """A route; one of GET reads in a thread of ``reads``."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        is_get = {*(options.get("methods") or ())} == {"GET"}
        bounded = _bounded(endpoint) if is_get and not iscoroutinefunction(endpoint) else endpoint
        super().__init__(path, bounded, **options)


def _bounded(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(endpoint)
    async def bounded(**arguments: Any) -> Any:
        return await to_thread.run_sync(partial(endpoint, **arguments), limiter=reads())

    return bounded
