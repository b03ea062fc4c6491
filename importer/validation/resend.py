"""A request that failed, sent again: whether the request fails, or its moment, or one of several servers."""

from __future__ import annotations

from enum import Enum, auto

from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused, ServerUnreachable

TIMES = 2  # a gateway may keep more than one connection that the server has ended
TURNS = 5  # of servers that take turns, until all of them are taken for alike


class Resent(Enum):
    """What comes of a failed request that is sent again."""

    FAILS = auto()
    ANSWERED = auto()
    AT_TIMES = auto()


def resent(error: ExchangeError, ctx: Context) -> Resent:
    """Return what comes of a request that was refused, or that a gateway lost, once it is sent again.

    A lost one is answered where an idle connection had ended. Where it is lost at times even without a pause,
    or refused at times, servers take turns.
    """
    lost = isinstance(error, ServerUnreachable) or (isinstance(error, RequestRefused) and error.lost)
    refused = isinstance(error, RequestRefused) and not error.broke and not error.limited
    failed = next((one for one in reversed(ctx.log) if one.error is not None), None)
    if not (lost or refused) or failed is None or failed.method != "POST" or failed.request is None:
        return Resent.FAILS
    path, request = failed.path, dict(failed.request)
    if not any(_answered(ctx, path, request) for _ in range(TIMES if lost else TURNS)):
        return Resent.FAILS
    if refused or not all(_answered(ctx, path, request) for _ in range(TURNS)):
        return Resent.AT_TIMES
    return Resent.ANSWERED


def _answered(ctx: Context, path: str, request: dict[str, object]) -> bool:
    try:
        ctx.client.read(path, request, ctx.log)
    except ExchangeError:
        return False
    return True
