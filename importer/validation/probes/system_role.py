"""The probe of the system's turn: it reaches the prompt, or is refused with a message."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import left_out, same_length
from importer.validation.errors import RequestRefused
from importer.validation.expectations import CommonReason, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import SYSTEM, SYSTEM_LONGER
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply


class SystemRoleReason(ReasonKind):
    """The reasons of ``system-role``."""

    UNSEEN = "unseen", "the system's words do not reach the prompt"
    COUNTED = "counted", "prompts of {short} and {longer} tokens"


NAME = "system-role"
LESSON = "Templates without a system role dropped it in silence, and every instruction with it."
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Compare prompts with a short system's turn and with a long one."""
    try:
        outcome = judge(ctx.first(SYSTEM), ctx.first(SYSTEM_LONGER))
    except RequestRefused as refused:
        return ctx.refused(refused, SYSTEM)
    if isinstance(outcome, Fail):
        return left_out(ctx, (SYSTEM, SYSTEM_LONGER), outcome.reason, Reason(Remedy.RENDER_SYSTEM_ROLE))
    return outcome


def judge(short: Reply, longer: Reply) -> Outcome:
    """Judge answers to a short and a long system's turn."""
    if short.usage.prompt is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    if same_length(short, longer) or (longer.usage.prompt or 0) < short.usage.prompt:
        return Fail(
            Reason(SystemRoleReason.UNSEEN), "configuration", Reason(Remedy.RENDER_SYSTEM_ROLE), trials=2
        )
    return Pass(
        Reason(SystemRoleReason.COUNTED, short=short.usage.prompt, longer=longer.usage.prompt), trials=2
    )
