"""The probe of a plain chat: a question is answered in the content, and the answer ends."""

from __future__ import annotations

from enum import StrEnum

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.diagnosis import endless, swallowed
from importer.validation.expectations import CommonReason, no_chat
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import GREETING
from importer.validation.remedy import NO_REASONING_PARSER
from importer.validation.reply import Reply


class PlainChatReason(StrEnum):
    """The reasons of ``plain-chat``."""

    CALL_NOT_OFFERED = "call-not-offered"
    ALL_REASONING = "all-reasoning"
    NO_WORD = "no-word"


NAME = "plain-chat"
LESSON = (
    "A wrong reasoning parser leaves content null, a missing end-of-turn token talks on: both with HTTP 200."
)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge the answer to a greeting."""
    return ctx.judged(GREETING, lambda reply: judge(reply, ctx.promise.markers))


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting."""
    if reply.tool_calls:
        return Fail(Reason(PlainChatReason.CALL_NOT_OFFERED), "engine")
    if reply.finish_reason == "length":
        return endless(reply, markers)
    if reply.finish_reason != "stop":
        return Fail(Reason(CommonReason.NOT_STOPPED, finish_reason=reply.finish_reason), "engine")
    if reply.content.strip():
        return Pass(Reason(CommonReason.ANSWERED, content=reply.content.strip()[:80]))
    if reply.reasoning.strip():
        return Fail(
            Reason(PlainChatReason.ALL_REASONING),
            "configuration",
            NO_REASONING_PARSER,
        )
    if swallowed(reply):
        return Fail(Reason(CommonReason.NOTHING_ARRIVED, tokens=reply.usage.completion), "configuration")
    return Inconclusive(Reason(PlainChatReason.NO_WORD), "model")
