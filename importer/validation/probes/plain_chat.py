"""The probe of a plain chat: a question is answered in the content, and the answer ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import endless, swallowed
from importer.validation.expectations import CommonReason, no_chat
from importer.validation.mutations import ends_otherwise
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass, failing
from importer.validation.prompts import GREETING, Prompt
from importer.validation.remedy import NO_REASONING_PARSER, TRAINED_WEIGHTS, Remedy
from importer.validation.reply import Reply
from importer.validation.tool_markup import call_markup


class PlainChatReason(ReasonKind):
    """The reasons of ``plain-chat``."""

    BEGINS_A_CALL = "begins-a-call", "the model begins a call to say hello"
    CALL_NOT_OFFERED = "call-not-offered", "a tool call arrived where no tool was offered"
    ALL_REASONING = "all-reasoning", "content is empty: the whole answer arrived as reasoning"
    DATED = "dated", "an answer is of {day} by the clock of the server"
    NO_WORD = "no-word", "the model ended its turn without a word"


NAME = "plain-chat"
LESSON = (
    "A wrong reasoning parser leaves content null, a missing end-of-turn token talks on: both with HTTP 200."
)
FIRST = datetime(2020, 1, 1, tzinfo=UTC).timestamp()  # no server of this API is older; 0 stands for none
needs = no_chat
Judge = Callable[[Reply, tuple[str, ...]], Outcome]


def run(ctx: Context) -> Outcome:
    """Judge the answer to a greeting, and its date."""
    outcome = answered(ctx, GREETING)
    if outcome.gives(CommonReason.STILL_WRITING):
        return failing(outcome, "model", Reason(Remedy.ENDING_WEIGHTS))
    return judge_date(ctx.first(GREETING)) or outcome if isinstance(outcome, Pass) else outcome


def judge_date(reply: Reply) -> Fail | None:
    """Judge when an answer was made, by the server's clock; ``None`` where that may be."""
    created = next((data.get("created") for data in reply.raw), None)
    if not isinstance(created, int | float) or not 0 < created < FIRST:
        return None
    day = datetime.fromtimestamp(created, UTC).date().isoformat()
    return Fail(Reason(PlainChatReason.DATED, day=day), "environment", Reason(Remedy.SET_CLOCK))


def answered(ctx: Context, prompt: Prompt, judge_one: Judge | None = None) -> Outcome:
    """Return the judgement of the answers to a greeting; ``judge_one`` is ``judge`` unless given."""
    judge_reply = judge_one or judge
    outcome = ctx.judged(prompt, lambda reply: judge_reply(reply, ctx.promise.markers))
    seen = ctx.look(prompt) if isinstance(outcome, Fail) else None
    return judge_lost(outcome, seen) if isinstance(outcome, Fail) and seen is not None else outcome


def judge_lost(failure: Fail, seen: Reply) -> Outcome:
    """Judge a failure beside the text of the model: half a call is lost, and attributed to the model."""
    if seen.finish_reason == "tool_calls" and not seen.tool_calls and call_markup(seen.written):
        return Inconclusive(Reason(PlainChatReason.BEGINS_A_CALL), "model", trials=failure.trials)
    return failure


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting."""
    if reply.finish_reason == "length":
        return endless(reply, markers)
    if reply.tool_calls:
        return Fail(Reason(PlainChatReason.CALL_NOT_OFFERED), "engine")
    if reply.finish_reason != "stop":
        return Fail(
            Reason(CommonReason.NOT_STOPPED, finish_reason=reply.finish_reason),
            "engine",
            ends_otherwise("stop", reply),
        )
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
    return Inconclusive(Reason(PlainChatReason.NO_WORD), "model", TRAINED_WEIGHTS)
