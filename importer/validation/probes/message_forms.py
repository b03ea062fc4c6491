"""The probe of what reaches the prompt: tools, turns of every role, questions in a row, images."""

from __future__ import annotations

from functools import partial

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, in_turn
from importer.validation.diagnosis import left_out
from importer.validation.errors import RequestRefused
from importer.validation.expectations import CommonReason, no_chat, no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Stage, holding
from importer.validation.probe import Rests, probe
from importer.validation.probes.tasks import images
from importer.validation.probes.tools import tools_in_prompt
from importer.validation.prompts import (
    NAME_RECALL,
    SUM,
    SYSTEM,
    SYSTEM_LONGER,
    TWO_USERS,
)
from importer.validation.remedy import Need, template
from importer.validation.reply import Reply


class FormsReason(ReasonKind):
    """The reasons of ``message-forms``."""

    SYSTEM_UNSEEN = "system-unseen", "the system's words do not reach the prompt"


@probe(
    "message-forms",
    "Tools, system turns, earlier turns or images were dropped; two questions in a row were refused.",
    needs=no_chat,
    observes=Stage.TEMPLATE,
    rests_on=Rests.REQUESTS,
)
def message_forms(ctx: Context) -> Outcome:
    """Compare prompts with and without each part of a conversation."""
    parts = {} if no_tools(ctx.promise) else {"tools": tools_in_prompt}
    parts |= {"system": _system, "two questions": _in_a_row, "earlier turns": _earlier}
    if ctx.promise.images and not ctx.promise.lacks("images"):
        parts["images"] = images
    return in_turn({name: partial(part, ctx) for name, part in parts.items()})


def _earlier(ctx: Context) -> Outcome:
    """Compare a question alone with one behind an earlier turn."""
    lost = Reason(CommonReason.TURNS_UNSEEN)
    alone, behind = (ctx.first(prompt).usage.prompt for prompt in (SUM, NAME_RECALL))
    if alone is None or behind is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    if behind > alone:
        return holding("earlier turns reach the prompt")
    return left_out(ctx, (SUM, NAME_RECALL), lost, template(Need.RENDER_TURNS))


def _system(ctx: Context) -> Outcome:
    """Compare prompts with a short system's turn and with a long one."""
    try:
        outcome = judge_system(ctx.first(SYSTEM), ctx.first(SYSTEM_LONGER))
    except RequestRefused as refused:
        return ctx.refused(refused, SYSTEM)
    if not isinstance(outcome, Fail):
        return outcome
    remedy = template(Need.RENDER_SYSTEM_ROLE)
    return left_out(ctx, (SYSTEM, SYSTEM_LONGER), outcome.reason, remedy, needed=False)


def judge_system(short: Reply, longer: Reply) -> Outcome:
    """Judge answers to a short and a long system's turn."""
    if short.usage.prompt is None:
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    if (longer.usage.prompt or 0) <= short.usage.prompt:
        unseen, remedy = Reason(FormsReason.SYSTEM_UNSEEN), template(Need.RENDER_SYSTEM_ROLE)
        return Fail(unseen, Stage.TEMPLATE, remedy, trials=2)
    return holding("the system's words reach the prompt", 2)


def _in_a_row(ctx: Context) -> Outcome:
    """Send two questions in a row."""
    try:
        ctx.first(TWO_USERS)
    except RequestRefused as refused:
        return ctx.refused(refused, TWO_USERS)
    return holding("two questions in a row are taken")
