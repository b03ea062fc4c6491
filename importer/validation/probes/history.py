"""What was said before reaches the prompt."""

from __future__ import annotations

from importer.validation.blame import endless, left_out
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.promise import no_chat
from importer.validation.prompts import NAME_TOLD, SUM
from importer.validation.reply import Reply

NAME = "history"
LESSON = "A template that rendered the last turn only answered every question, and remembered nothing."
EVERY_TURN = "Use a chat template that renders every turn."
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Ask for what an earlier turn has told."""
    alone = ctx.first(SUM).usage.prompt
    outcome = ctx.judged(NAME_TOLD, lambda reply: judge(reply, alone, ctx.promise.markers))
    if isinstance(outcome, Fail) and outcome.mend == EVERY_TURN:
        return left_out(ctx, (SUM, NAME_TOLD), outcome.reason, outcome.mend)
    return outcome


def judge(reply: Reply, alone: int | None, markers: tuple[str, ...] = ()) -> Outcome:
    """An answer about an earlier turn; ``alone`` counts the prompt of one short question."""
    count = reply.usage.prompt
    if any(word in reply.content.casefold() for word in NAME_TOLD.expects):
        return Pass(f"answered {reply.content.strip()[:80]!r}")
    if count is not None and alone is not None and count <= alone:
        return Fail("earlier turns do not reach the prompt", "configuration", EVERY_TURN)
    if reply.finish_reason == "length":
        return endless(reply, markers)
    return Inconclusive(f"the answer does not say what was told: {reply.content.strip()[:80]!r}", "model")
