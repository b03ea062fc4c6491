"""The probe of history: earlier turns reach the prompt."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import endless, left_out
from importer.validation.expectations import CommonReason, no_chat
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass, asks_for
from importer.validation.prompts import NAME_RECALL, SUM
from importer.validation.remedy import TRAINED_WEIGHTS, Remedy
from importer.validation.reply import Reply


class HistoryReason(ReasonKind):
    """The reasons of ``history``."""

    NOT_SAID = "not-said", "the answer does not say what was told: {content!r}"


NAME = "history"
LESSON = "A template that rendered the last turn only answered every question, and remembered nothing."
EVERY_TURN = Reason(Remedy.RENDER_TURNS)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Request a fact of an earlier turn."""
    alone = ctx.first(SUM).usage.prompt
    outcome = ctx.judged(NAME_RECALL, lambda reply: judge(reply, alone, ctx.promise.markers))
    if isinstance(outcome, Fail) and asks_for(outcome, Remedy.RENDER_TURNS):
        return left_out(ctx, (SUM, NAME_RECALL), outcome.reason, EVERY_TURN)
    return outcome


def judge(reply: Reply, alone: int | None, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer about an earlier turn; ``alone`` is the prompt of one short question in tokens."""
    count = reply.usage.prompt
    if NAME_RECALL.answered_by(reply.content):
        return Pass(Reason(CommonReason.ANSWERED, content=reply.content.strip()[:80]))
    if count is not None and alone is not None and count <= alone:
        return Fail(Reason(CommonReason.TURNS_UNSEEN), "configuration", EVERY_TURN)
    if reply.finish_reason == "length":
        return endless(reply, markers)
    return Inconclusive(
        Reason(HistoryReason.NOT_SAID, content=reply.content.strip()[:80]), "model", TRAINED_WEIGHTS
    )
