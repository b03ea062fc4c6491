"""A request that failed, sent again: whether the request fails, or its moment, or one of several servers."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused, ServerUnreachable

TIMES = 2  # a gateway may keep more than one connection that the server has ended
TURNS = 5  # of servers that take turns, until all of them are taken for alike


def answered(error: ExchangeError, ctx: Context) -> bool:
    """Return whether a request that a gateway lost is answered when it is sent again."""
    lost = isinstance(error, ServerUnreachable)
    if not lost and not (isinstance(error, RequestRefused) and error.lost):
        return False
    return _once(ctx, TIMES)


def at_times(error: ExchangeError, ctx: Context) -> bool:
    """Return whether a request that a server refused is answered when it is sent again, by another one."""
    if not isinstance(error, RequestRefused) or error.broke or error.limited:
        return False
    return _once(ctx, TURNS)


def _once(ctx: Context, times: int) -> bool:
    """Return whether the last request that failed is answered in one of so many times."""
    failed = next((one for one in reversed(ctx.log) if one.error is not None), None)
    if failed is None or failed.method != "POST" or failed.request is None:
        return False
    return any(_answered(ctx, failed.path, dict(failed.request)) for _ in range(times))


def _answered(ctx: Context, path: str, request: dict[str, object]) -> bool:
    try:
        ctx.client.read(path, request, ctx.log)
    except ExchangeError:
        return False
    return True
