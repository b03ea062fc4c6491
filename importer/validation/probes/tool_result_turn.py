"""The tool's result goes back, and the answer uses it."""

from __future__ import annotations

from importer.validation.blame import same_length, swallowed
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.promise import no_tools
from importer.validation.prompts import WEATHER_ANSWERED, WEATHER_ANSWERED_LONGER
from importer.validation.reply import Reply

NAME = "tool-result-turn"
LESSON = "Templates that drop the result, or its id on the way, break multi-turn tool use in silence."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Give the result, see that it reaches the prompt, and that the answer shows it."""
    if same_length(ctx.first(WEATHER_ANSWERED), ctx.ask(WEATHER_ANSWERED_LONGER)):
        return Fail(
            "the tool's result does not reach the prompt: a longer one makes it no longer",
            "configuration",
            "Use a chat template that renders the role 'tool'.",
            trials=2,
        )
    return ctx.judged(WEATHER_ANSWERED, judge)


def judge(reply: Reply) -> Outcome:
    """An answer after the tool has spoken."""
    text = reply.content.strip()
    if any(word in text.casefold() for word in WEATHER_ANSWERED.expects):
        return Pass(f"answered {text[:80]!r}")
    if reply.tool_calls:
        return Inconclusive("the model calls the tool again", "model")
    if swallowed(reply):
        return Fail(
            f"the model wrote {reply.usage.completion} tokens and nothing of them arrived", "configuration"
        )
    return Inconclusive(f"the answer does not use the result: {text[:120]!r}", "model")
