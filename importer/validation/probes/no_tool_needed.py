"""The probe of needless calls: a tool on offer is left alone where it is not needed."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import endless
from importer.validation.expectations import no_tools
from importer.validation.outcome import Inconclusive, Outcome
from importer.validation.probes import plain_chat
from importer.validation.prompts import GREETING_WITH_TOOL
from importer.validation.remedy import TRAINED_WEIGHTS
from importer.validation.reply import Reply
from importer.validation.tool_markup import control_token


class NoToolNeededReason(ReasonKind):
    """The reasons of ``no-tool-needed``."""

    CALLS = "calls", "the model calls {name} to say hello"


NAME = "no-tool-needed"
LESSON = (
    "A parser that sees calls everywhere, or a model that cannot but call, is of no use in a conversation."
)
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Send a greeting with a tool on offer."""
    return plain_chat.answered(ctx, GREETING_WITH_TOOL, judge)


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting that needs no tool."""
    if reply.tool_calls and control_token(reply.content, markers):
        return endless(reply, markers)  # text behind a missed end is no answer
    if reply.tool_calls:
        return Inconclusive(
            Reason(NoToolNeededReason.CALLS, name=reply.tool_calls[0].name), "model", TRAINED_WEIGHTS
        )
    return plain_chat.judge(reply, markers)
