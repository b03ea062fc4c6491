"""A call that the limit of tokens cuts is never given out as a whole one."""

from __future__ import annotations

import json

from importer.validation.calls import first_call
from importer.validation.context import Context
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.promise import no_tools
from importer.validation.prompts import WEATHER
from importer.validation.reply import Reply

NAME = "cut-call"
LESSON = (
    "A call that was cut at the end of the stream was lost without a word, or came with broken arguments."
)
TAIL = 5  # tokens before the end of a call that are surely inside it
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Ask again with a few tokens less than the call takes."""
    call, tokens = first_call(ctx), ctx.first(WEATHER).usage.completion
    if isinstance(call, NotApplicable):
        return call
    if tokens is None or tokens <= TAIL:
        return NotApplicable("the engine does not count the tokens of a call")
    ways = {"whole": False, "streamed": True}
    found = {way: judge(ctx.ask(WEATHER, stream=s, max_tokens=tokens - TAIL)) for way, s in ways.items()}
    for way, outcome in found.items():
        if isinstance(outcome, Fail):
            return Fail(f"{way}: {outcome.reason}", outcome.attribution, outcome.mend, 2)
    return Pass("; ".join(dict.fromkeys(o.reason for o in found.values())), trials=2)


def judge(reply: Reply) -> Outcome:
    """An answer that was cut inside a call."""
    broken = [call for call in reply.tool_calls if not _is_object(call.arguments)]
    if reply.finish_reason == "length":
        return Pass("the answer says that it was cut")
    if broken:
        return Fail(f"half a call is given out as a whole one: {broken[0].arguments[:80]!r}", "engine")
    if reply.tool_calls:
        return Pass("the call was whole before the cut")
    return Fail(f"the call was cut, and finish_reason says {reply.finish_reason!r}", "engine")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
