"""The probe of reasoning in OpenAI's responses: an item of its own, apart from the message."""

from __future__ import annotations

from importer.reasons import Reason
from importer.validation import other_apis
from importer.validation.context import Context
from importer.validation.expectations import CommonReason, Expectations, no_reasoning
from importer.validation.outcome import NotApplicable, Outcome
from importer.validation.probes import reasoning_apart
from importer.validation.prompts import SUM, SUM_THINKING, Prompt

NAME = "responses-reasoning"
LESSON = "Each endpoint has its own path for thoughts: apart in the chat, they were part of the message here."


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no reasoning parser, or no endpoint of this format."""
    return no_reasoning(promise) or other_apis.needs_responses(promise)


def run(ctx: Context) -> Outcome:
    """Judge a question that the chat answers with a thought."""
    prompt = _thinking(ctx)
    if prompt is None:
        return NotApplicable(Reason(CommonReason.NO_THOUGHT))
    return other_apis.judged_responses(ctx, prompt, reasoning_apart.judge)


def _thinking(ctx: Context) -> Prompt | None:
    """Return the first prompt whose chat has a thought."""
    prompts = (SUM,) if ctx.promise.lacks("switches") else (SUM, SUM_THINKING)
    return next((prompt for prompt in prompts if ctx.first(prompt).reasoning.strip()), None)
