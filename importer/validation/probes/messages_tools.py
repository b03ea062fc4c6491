"""The probe of tools over Anthropic's messages: a block ``tool_use`` with an object, whole and streamed."""

from __future__ import annotations

from importer.reasons import Reason
from importer.validation import other_apis
from importer.validation.calls import judge_call
from importer.validation.context import Context
from importer.validation.expectations import Expectations, no_tools
from importer.validation.outcome import Inconclusive, Outcome
from importer.validation.probes import no_special_tokens
from importer.validation.prompts import WEATHER
from importer.validation.reply import Reply

NAME = "messages-tools"
LESSON = "Calls came as text to Anthropic's clients, or with their input encoded once more: no agent went on."


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no tools, or no endpoint of this format."""
    return no_tools(promise) or other_apis.needs_anthropic(promise)


def run(ctx: Context) -> Outcome:
    """Judge both ways; without a call, compare the length of the prompt with that of the chat."""
    signs = no_special_tokens.signs(ctx.promise)
    outcome = other_apis.judged(ctx, WEATHER, lambda reply: judge(reply, signs))
    if not isinstance(outcome, Inconclusive):
        return outcome
    chat, here = ctx.first(WEATHER), other_apis.ask_anthropic(ctx, WEATHER, max_tokens=1)
    return other_apis.tools_left_out(chat.usage.prompt, here.usage.prompt) or outcome


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer that should be a call."""
    return no_special_tokens.leak(reply, markers) or judge_call(reply, WEATHER)
