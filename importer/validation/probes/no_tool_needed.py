"""The probe of needless calls: a tool on offer is left alone where it is not needed."""

from __future__ import annotations

from enum import StrEnum

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.diagnosis import endless
from importer.validation.expectations import no_tools
from importer.validation.markup import call_markup, control_token
from importer.validation.outcome import Fail, Inconclusive, Outcome
from importer.validation.probes import plain_chat
from importer.validation.prompts import GREETING_WITH_TOOL
from importer.validation.reply import Reply


class NoToolNeededReason(StrEnum):
    """The reasons of ``no-tool-needed``."""

    BEGINS_A_CALL = "begins-a-call"
    CALLS = "calls"


NAME = "no-tool-needed"
LESSON = (
    "A parser that sees calls everywhere, or a model that cannot but call, is of no use in a conversation."
)
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Send a greeting with a tool on offer."""
    outcome = ctx.judged(GREETING_WITH_TOOL, lambda reply: judge(reply, ctx.promise.markers))
    if not isinstance(outcome, Fail):
        return outcome
    seen = ctx.look(GREETING_WITH_TOOL)
    return outcome if seen is None else judge_lost(outcome, seen)


def judge_lost(failure: Fail, seen: Reply) -> Outcome:
    """Judge a failure beside the text of the model: half a call is lost, and attributed to the model."""
    if seen.finish_reason == "tool_calls" and not seen.tool_calls and call_markup(seen.written):
        return Inconclusive(Reason(NoToolNeededReason.BEGINS_A_CALL), "model", trials=failure.trials)
    return failure


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting that needs no tool."""
    if reply.tool_calls and control_token(reply.content, markers):
        return endless(reply, markers)  # text behind a missed end is no answer
    if reply.tool_calls:
        return Inconclusive(Reason(NoToolNeededReason.CALLS, name=reply.tool_calls[0].name), "model")
    return plain_chat.judge(reply, markers)
