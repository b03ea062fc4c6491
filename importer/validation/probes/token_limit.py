"""The probe of ``max_tokens``: the limit holds, and the answer reports the cut."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, ask_both_ways
from importer.validation.expectations import CommonReason, no_chat
from importer.validation.mutations import ends_otherwise
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import COUNT
from importer.validation.reply import Reply


class TokenLimitReason(ReasonKind):
    """The reasons of ``token-limit``."""

    TOO_MANY = "too-many", "{count} tokens where {limit} were allowed"
    CUT = "cut", "cut at {limit} tokens, finish_reason 'length'"
    NOT_SAID = "not-said", "the answer was cut, and finish_reason is {finish_reason!r}, not 'length'"


NAME = "token-limit"
LESSON = "An answer that was cut said 'stop', or ran on to the engine's own limit: clients took it for whole."
LIMIT = 5  # tokens
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Allow a few tokens for an answer that needs many."""
    return ask_both_ways(ctx, COUNT, judge, max_tokens=LIMIT)


def judge(reply: Reply) -> Outcome:
    """Judge an answer longer than ``LIMIT`` tokens."""
    count, finish = reply.usage.completion, reply.finish_reason
    if count is not None and count > LIMIT:
        return Fail(Reason(TokenLimitReason.TOO_MANY, count=count, limit=LIMIT), "engine")
    if finish == "length":
        return Pass(Reason(TokenLimitReason.CUT, limit=LIMIT))
    if finish == "stop" and (count is None or count < LIMIT):
        return Inconclusive(Reason(CommonReason.DONE_BEFORE), "model")
    return Fail(
        Reason(TokenLimitReason.NOT_SAID, finish_reason=finish), "engine", ends_otherwise("length", reply)
    )
