"""The probe of streamed tool calls: structured, complete, and finished as a call."""

from __future__ import annotations

from importer.validation.calls import judge_call
from importer.validation.context import Context
from importer.validation.diagnosis import tools_unseen
from importer.validation.expectations import no_tools
from importer.validation.outcome import Inconclusive, Outcome, Pass
from importer.validation.prompts import WEATHER
from importer.validation.rendering import only_streamed, streaming_fault

NAME = "tool-call-streamed"
LESSON = "Streamed calls arrived as content, without finish_reason, or lost their end when the stream ended."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Judge the streamed answer; where only it fails, streaming is at fault."""
    outcome = ctx.judged(WEATHER, lambda reply: judge_call(reply, WEATHER), stream=True)
    if not isinstance(outcome, Pass) and isinstance(judge_call(ctx.first(WEATHER), WEATHER), Pass):
        return streaming_fault(ctx, WEATHER, only_streamed(outcome))
    unseen = tools_unseen(ctx) if isinstance(outcome, Inconclusive) else None
    return unseen or outcome
