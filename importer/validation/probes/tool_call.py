"""The probe of tool calls: a question that needs the tool is answered with a structured call."""

from __future__ import annotations

from importer.validation.calls import judge_call
from importer.validation.context import Context
from importer.validation.diagnosis import tools_unseen
from importer.validation.expectations import no_tools
from importer.validation.outcome import Inconclusive, Outcome
from importer.validation.prompts import WEATHER

NAME = "tool-call"
LESSON = (
    "A parser for another format lets calls through as text: 0 of 200 were read, all 200 were well formed."
)
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Judge answers to a question about the weather; repeat where the model declined."""
    outcome = ctx.judged(WEATHER, lambda reply: judge_call(reply, WEATHER))
    unseen = tools_unseen(ctx) if isinstance(outcome, Inconclusive) else None
    return unseen or outcome
