"""The probe of the default limit: a request without ``max_tokens`` is answered to the end."""

from __future__ import annotations

from importer.reasons import Fields, Reason, ReasonKind
from importer.validation.context import STEADY, Context
from importer.validation.expectations import CommonReason, no_chat
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.prompts import COUNT
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply


def _cut(fields: Fields) -> str:
    tokens = "few" if fields["tokens"] is None else fields["tokens"]
    return f"without max_tokens in the request an answer is cut after {tokens} tokens"


class OwnLimitReason(ReasonKind):
    """The reasons of ``own-limit``."""

    ALL_CUT = "all-cut", "answers are cut after {tokens} tokens where {allowed} are allowed"
    ANY_LIMIT = "any-limit", "the answer comes to any limit: see plain-chat"
    CUT = "cut", _cut
    ENDS = "ends", "ends by itself, finish_reason {finish_reason!r}"


NAME = "own-limit"
LESSON = "Clients that sent no max_tokens got the engine's own few, and took half an answer for a whole one."
CAPPED = Reason(Remedy.RAISE_LIMITS)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Repeat without ``max_tokens`` a request that is answered to the end with it, both without chance."""
    full = ctx.first(COUNT)
    if full.finish_reason != "length":
        full = ctx.ask(COUNT, **STEADY)
    reply = full if full.finish_reason == "length" else ctx.ask(COUNT, max_tokens=None, **STEADY)
    return judge(reply, full, ctx.promise.limit(COUNT.tokens))


def judge(reply: Reply, full: Reply, allowed: int) -> Outcome:
    """Judge an answer to a request without a limit, beside one with a limit of ``allowed`` tokens."""
    if full.finish_reason == "length":
        if full.usage.completion is not None and full.usage.completion < allowed:
            reason = Reason(OwnLimitReason.ALL_CUT, tokens=full.usage.completion, allowed=allowed)
            return Fail(reason, "configuration", CAPPED)
        return NotApplicable(Reason(OwnLimitReason.ANY_LIMIT))
    if reply.finish_reason == "length":
        return Fail(
            Reason(OwnLimitReason.CUT, tokens=reply.usage.completion),
            "configuration",
            Reason(Remedy.RAISE_MAX_TOKENS),
        )
    if not (reply.content.strip() or reply.reasoning.strip()):
        return Inconclusive(Reason(CommonReason.EMPTY), "model")
    return Pass(Reason(OwnLimitReason.ENDS, finish_reason=reply.finish_reason))
