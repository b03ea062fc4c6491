"""The probe of tools in OpenAI's responses: an item ``function_call``, whole and streamed, and its result."""

from __future__ import annotations

import json
from dataclasses import replace

from importer.reasons import Reason
from importer.validation import other_apis
from importer.validation.calls import CallReason, judge_call
from importer.validation.context import WAYS, Context
from importer.validation.expectations import Expectations, no_tools
from importer.validation.outcome import Inconclusive, Outcome, Pass, named
from importer.validation.probes import call_id_returns, no_special_tokens, tool_result_turn
from importer.validation.prompts import WEATHER
from importer.validation.remedy import TRAINED_WEIGHTS
from importer.validation.reply import Reply

NAME = "responses-tools"
LESSON = "Arguments stood whole in a new item and came again in pieces: clients joined them to broken JSON."
RESULT = json.dumps({"temperature": -3, "condition": "snowy"})


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no tools, or no endpoint of this format."""
    return no_tools(promise) or other_apis.needs_responses(promise)


def run(ctx: Context) -> Outcome:
    """Judge a call both ways, then the answer to its result; without a call, the length of the prompt."""
    signs = no_special_tokens.signs(ctx.promise)
    lacking = ctx.promise.lacks("call-pieces")
    ways = WAYS if lacking is None else {"whole": False}
    called = other_apis.judged_responses(ctx, WEATHER, lambda reply: judge(reply, signs), ways)
    if isinstance(called, Inconclusive):
        chat, here = ctx.first(WEATHER), other_apis.ask_responses(ctx, WEATHER, max_output_tokens=1)
        return other_apis.tools_left_out(chat.usage.prompt, here.usage.prompt) or called
    if not isinstance(called, Pass):
        return called
    answered = _answered(ctx)
    if not isinstance(answered, Pass):
        return named(answered, "result")
    notes = (*called.notes, answered.reason, *([lacking] if lacking else []))
    return replace(called, trials=called.trials + answered.trials, notes=notes)


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer that should be a call."""
    return no_special_tokens.leak(reply, markers) or judge_call(reply, WEATHER)


def _answered(ctx: Context) -> Outcome:
    """Send back the engine's own items with the result of the call, and judge the answer."""
    reply = other_apis.ask_responses(ctx, WEATHER)
    if not reply.tool_calls:
        return Inconclusive(Reason(CallReason.NO_CALL), "model", TRAINED_WEIGHTS)
    call = reply.tool_calls[0]
    items = [*other_apis.request_responses(WEATHER)["input"], *reply.raw[0]["output"]]
    results = [other_apis.output(one.id, RESULT) for one in reply.tool_calls]

    def ask(stream: bool) -> Reply:
        return other_apis.ask_responses(ctx, WEATHER, stream=stream, input=[*items, *results])

    return other_apis.judged_beside_chat(ctx, call_id_returns.answered(call), ask, tool_result_turn.judge)
