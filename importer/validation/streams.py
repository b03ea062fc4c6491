"""Faults of streams: what is changed in them, and at which length they are broken off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from importer.reasons import Reason
from importer.validation import mutations, proof_check
from importer.validation.context import Context
from importer.validation.diagnosis import unread
from importer.validation.errors import (
    ExchangeError,
    ReplyError,
    ServerUnreachable,
    StreamCut,
)
from importer.validation.expectations import CommonReason
from importer.validation.outcome import Fail, Outcome, failing, named
from importer.validation.prompts import Prompt
from importer.validation.remedy import (
    NO_REASONING_PARSER,
    OTHER_REASONING_PARSER,
    OTHER_TOOL_PARSER,
    WHOLE_ANSWERS,
    Remedy,
)
from importer.validation.tool_markup import looks_like_call, thinks

AGAIN = 2  # further streams that are broken off, until a limit is named


def only_streamed(outcome: Outcome) -> Outcome:
    """Return the outcome of a streamed answer, with the note that the whole one is right."""
    note = Reason(CommonReason.WHOLE_IS_RIGHT)
    return named(replace(outcome, notes=(*outcome.notes, note)), "streamed")


def streaming_fault(ctx: Context, prompt: Prompt, outcome: Outcome) -> Fail:
    """Return the fault of streaming: the engine, unless the document names the wrong parser."""
    seen = ctx.look(prompt)
    missed = unread(seen, prompt) if seen is not None else None
    if seen is not None and missed is not None:
        remedy = OTHER_REASONING_PARSER if thinks(seen.written) else OTHER_TOOL_PARSER
        if looks_like_call(seen.written, prompt.tools) and not seen.tool_calls:
            remedy = OTHER_TOOL_PARSER
        return failing(outcome, "configuration", remedy, missed)
    if proof_check.thinks_never(ctx):
        return failing(outcome, "configuration", NO_REASONING_PARSER)
    better = proof_check.whole_in_pieces(ctx) if prompt.tools else None
    if better is not None:
        return failing(outcome, "configuration", better)
    return failing(outcome, "engine", _whole_until(ctx, prompt))


def _whole_until(ctx: Context, prompt: Prompt) -> Reason:
    """Return the remedy for broken streams, with what is changed in them where that is seen."""
    try:
        change = mutations.told(ctx.first(prompt), ctx.first(prompt, stream=True))
    except ExchangeError:
        return WHOLE_ANSWERS
    return WHOLE_ANSWERS if change is None else Reason(Remedy.WHOLE_ANSWERS, change=change)


def broken(error: ExchangeError, ctx: Context) -> Reason | None:
    """Return the remedy for a stream that cannot be read, where all whole answers can."""
    if not isinstance(error, ReplyError | ServerUnreachable) or not _streamed_last(ctx):
        return None
    if isinstance(error, StreamCut) and _is_whole(bytes(ctx.log[-1].received)):
        return Reason(Remedy.HEED_OPTIONS, option="stream")
    longer = _longer(ctx) if isinstance(error, ServerUnreachable | StreamCut) else None
    if longer is None and isinstance(error, ReplyError):
        return Reason(Remedy.WHOLE_ANSWERS, change=error.reason)
    return longer


def _is_whole(body: bytes) -> bool:
    """Return whether a whole answer came in place of a stream."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and "choices" in answer


def _longer(ctx: Context) -> Reason | None:
    """Return the remedy for a limit of streams: one is broken off each time, and a short one never."""
    cut, request = ctx.log[-1], ctx.log[-1].request or {}
    if not cut.received or any(_ends(request, ctx) for _ in range(AGAIN)):
        return None
    if not _ends({**request, "max_tokens": 1}, ctx):
        return None
    size = max(len(one.received) for one in (cut, *ctx.log[-AGAIN - 1 : -1]))
    return Reason(Remedy.LONGER_STREAMS, seconds=cut.seconds, size=size)


def _ends(request: Mapping[str, object], ctx: Context) -> bool:
    try:
        ctx.client.chat(request, ctx.log)
    except ExchangeError:
        return False
    return True


def _streamed_last(ctx: Context) -> bool:
    """Return whether the last answer was streamed, and all whole ones were readable."""
    requests = [e for e in ctx.log if e.request is not None]
    wholes = [e for e in requests if not (e.request or {}).get("stream")]
    return bool(requests and (requests[-1].request or {}).get("stream")) and all(
        e.error is None for e in wholes
    )
