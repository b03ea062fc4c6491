"""The probe of clients that hang up: the next answer is right and in time."""

from __future__ import annotations

import time

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import no_chat
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.prompts import COUNT, SUM
from importer.validation.reply import Reply


class ClientLeavesReason(ReasonKind):
    """The reasons of ``client-leaves``."""

    EMPTY = "empty", "after clients had left, an answer came back empty"
    SLOW = "slow", "after clients had left, an answer took {seconds:.1f} s instead of {before:.1f} s"
    ANSWERED = "answered", "answered in {seconds:.1f} s after four clients had left"


NAME = "client-leaves"
LESSON = "Work for clients that had left went on to its end and kept their slots; a race crashed the engine."
ALONE = True  # it measures the time of the answer after
BRIEF = 16  # tokens of the answers that are timed
SLOWER = 5.0  # times ``before``; and that many seconds are always allowed
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Hang up twice in each way, then send a question."""
    before = _timed(ctx)[1]
    left = ctx.promise.limit(COUNT.tokens)
    body = {
        "model": ctx.model,
        "messages": list(COUNT.messages),
        "max_tokens": left // 2 if ctx.promise.slow else left,
    }
    for after in (None, 1, None, 1):
        ctx.client.leave({**body, "stream": True}, ctx.log, after=after, wait=0.02)
    return judge(*_timed(ctx), before)


def _timed(ctx: Context) -> tuple[Reply, float]:
    started = time.monotonic()
    return ctx.ask(SUM, max_tokens=BRIEF), time.monotonic() - started


def judge(reply: Reply, seconds: float, before: float) -> Outcome:
    """Judge the answer after clients have left; ``before`` is its time in seconds without them."""
    if not (reply.content.strip() or reply.reasoning.strip()):
        return Fail(Reason(ClientLeavesReason.EMPTY), "engine")
    if seconds > SLOWER + SLOWER * before:
        return Fail(Reason(ClientLeavesReason.SLOW, seconds=seconds, before=before), "engine")
    return Pass(Reason(ClientLeavesReason.ANSWERED, seconds=seconds), trials=4)
