"""The tool's result goes back, and the answer uses it."""

from __future__ import annotations

from importer.validation.blame import results_unseen, swallowed
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.promise import no_tools
from importer.validation.prompts import BOTH_ANSWERED, WEATHER_ANSWERED
from importer.validation.reply import Reply

NAME = "tool-result-turn"
LESSON = "Templates that drop the result, or its id on the way, break multi-turn tool use in silence."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Give the result, see that it reaches the prompt, and that the answer shows it."""
    both = judge_rendered(ctx.rendered(BOTH_ANSWERED))
    return results_unseen(ctx) or both or ctx.judged(WEATHER_ANSWERED, judge)


def judge_rendered(text: str | None) -> Fail | None:
    """Two results, as the template renders them; ``None`` where nobody can tell, or it refuses them."""
    lost = [word for word in BOTH_ANSWERED.expects if text and word not in text]
    if not lost or len(lost) == len(BOTH_ANSWERED.expects):
        return None
    return Fail(
        "of the results of two calls only one reaches the prompt",
        "configuration",
        "Use a chat template that renders every turn of the role 'tool'.",
    )


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
