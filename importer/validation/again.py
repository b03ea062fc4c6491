"""A request that was lost on its way, sent again: whether the request fails, or only its moment."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused, ServerUnreachable

TIMES = 2  # a gateway may keep more than one connection that the server has ended


def answered(error: ExchangeError, ctx: Context) -> bool:
    """Return whether a request that a gateway lost is answered when it is sent again."""
    lost = isinstance(error, ServerUnreachable)
    if not lost and not (isinstance(error, RequestRefused) and error.lost):
        return False
    failed = next((one for one in reversed(ctx.log) if one.error is not None), None)
    if failed is None or failed.method != "POST" or failed.request is None:
        return False
    return any(_answered(ctx, failed.path, dict(failed.request)) for _ in range(TIMES))


def _answered(ctx: Context, path: str, request: dict[str, object]) -> bool:
    try:
        ctx.client.read(path, request, ctx.log)
    except ExchangeError:
        return False
    return True
