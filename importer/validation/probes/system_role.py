"""The system's words reach the prompt, or are refused in so many words."""

from __future__ import annotations

from importer.validation.blame import left_out, same_length
from importer.validation.context import Context
from importer.validation.errors import Refused
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.promise import no_chat
from importer.validation.prompts import SYSTEM, SYSTEM_LONGER
from importer.validation.reply import Reply

NAME = "system-role"
LESSON = "Templates without a system role dropped it in silence, and every instruction with it."
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Count the prompt with few words of the system and with many."""
    try:
        outcome = judge(ctx.first(SYSTEM), ctx.first(SYSTEM_LONGER))
    except Refused as refused:
        return ctx.refused(refused, SYSTEM)
    if isinstance(outcome, Fail):
        return left_out(ctx, (SYSTEM, SYSTEM_LONGER), outcome.reason, outcome.mend)
    return outcome


def judge(short: Reply, longer: Reply) -> Outcome:
    """Answers to a short and a longer word of the system."""
    if short.usage.prompt is None:
        return NotApplicable("the engine does not count the prompt's tokens")
    if same_length(short, longer) or (longer.usage.prompt or 0) < short.usage.prompt:
        mend = "Use a chat template that renders the role 'system'."
        return Fail("the system's words do not reach the prompt", "configuration", mend, trials=2)
    return Pass(f"prompts of {short.usage.prompt} and {longer.usage.prompt} tokens", trials=2)
