"""The probe of call ids: the id of a call, sent back with its result, is accepted."""

from __future__ import annotations

import json

from importer.validation.calls import first_call
from importer.validation.context import Context
from importer.validation.diagnosis import results_unseen
from importer.validation.expectations import no_tools
from importer.validation.outcome import NotApplicable, Outcome
from importer.validation.probes import tool_result_turn
from importer.validation.prompts import WEATHER, Prompt
from importer.validation.reply import ToolCall

NAME = "call-id-returns"
LESSON = "Ids that an engine makes up were refused by the model's own template, or lost, a turn later."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Request a call, then send its result under the same id."""
    call = first_call(ctx)
    if isinstance(call, NotApplicable):
        return call
    return results_unseen(ctx) or ctx.judged(answered(call), tool_result_turn.judge)


def answered(call: ToolCall) -> Prompt:
    """Return the weather question after ``call`` and its result, both under the engine's id."""
    function = {"name": call.name, "arguments": call.arguments}
    tool_call = {"id": call.id, "type": "function", "function": function}
    result = json.dumps({"temperature": -3, "condition": "snowy"})
    turns = (
        {"role": "assistant", "content": "", "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result},
    )
    return Prompt("own-id-answered", (*WEATHER.messages, *turns), WEATHER.tools, ("snow", "-3"))
