"""A plain question is answered in the content, and the answer ends."""

from __future__ import annotations

from importer.validation.blame import NO_REASONING_PARSER, endless, swallowed
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.promise import no_chat
from importer.validation.prompts import GREETING
from importer.validation.reply import Reply

NAME = "plain-chat"
LESSON = (
    "A wrong reasoning parser leaves content null, a missing end-of-turn token talks on: both with HTTP 200."
)
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Ask once, judge the answer."""
    return ctx.judged(GREETING, lambda reply: judge(reply, ctx.promise.markers))


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """An answer to a greeting."""
    if reply.tool_calls:
        return Fail("a tool call arrived where no tool was offered", "engine")
    if reply.finish_reason == "length":
        return endless(reply, markers)
    if reply.finish_reason != "stop":
        return Fail(f"finish_reason is {reply.finish_reason!r}, not 'stop'", "engine")
    if reply.content.strip():
        return Pass(f"answered {reply.content.strip()[:80]!r}")
    if reply.reasoning.strip():
        return Fail(
            "content is empty: the whole answer arrived as reasoning",
            "configuration",
            NO_REASONING_PARSER,
        )
    if swallowed(reply):
        return Fail(
            f"the model wrote {reply.usage.completion} tokens and nothing of them arrived", "configuration"
        )
    return Inconclusive("the model ended its turn without a word", "model")
