"""The probe of cut calls: a call that the limit of tokens cuts is never a whole one."""

from __future__ import annotations

from dataclasses import replace

from importer.reasons import Reason, ReasonKind
from importer.validation.calls import first_call
from importer.validation.context import Context
from importer.validation.expectations import no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass, named
from importer.validation.prompts import WEATHER
from importer.validation.reply import Reply, holds_object


class CutCallReason(ReasonKind):
    """The reasons of ``cut-call``."""

    NOT_COUNTED = "not-counted", "the engine does not count the tokens of a call"
    SAYS_CUT = "says-cut", "the answer says that it was cut"
    HALF = "half", "half a call is given out as a whole one: {arguments!r}"
    WHOLE = "whole", "the call was whole before the cut"
    NOT_SAID = "not-said", "the call was cut, and finish_reason says {finish_reason!r}"


NAME = "cut-call"
LESSON = (
    "A call that was cut at the end of the stream was lost without a word, or came with broken arguments."
)
TAIL = 5  # tokens before the end of a call that are surely inside it
FEATURE = "cut-calls"
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Repeat a request with a few tokens less than its call has."""
    call, tokens = first_call(ctx), ctx.first(WEATHER).usage.completion
    if isinstance(call, NotApplicable):
        return call
    if tokens is None or tokens <= TAIL:
        return NotApplicable(Reason(CutCallReason.NOT_COUNTED))
    ways = {"whole": False, "streamed": True}
    outcomes = {way: judge(ctx.ask(WEATHER, stream=s, max_tokens=tokens - TAIL)) for way, s in ways.items()}
    for way, outcome in outcomes.items():
        if isinstance(outcome, Fail):
            return replace(named(outcome, way), trials=2)
    first, *notes = dict.fromkeys(o.reason for o in outcomes.values())
    return Pass(first, trials=2, notes=tuple(notes))


def judge(reply: Reply) -> Outcome:
    """Judge an answer that was cut inside a call."""
    broken = [call for call in reply.tool_calls if not holds_object(call.arguments)]
    if reply.finish_reason == "length":
        return Pass(Reason(CutCallReason.SAYS_CUT))
    if broken:
        return Fail(Reason(CutCallReason.HALF, arguments=broken[0].arguments[:80]), "engine")
    if reply.tool_calls:
        return Pass(Reason(CutCallReason.WHOLE))
    return Fail(Reason(CutCallReason.NOT_SAID, finish_reason=reply.finish_reason), "engine")
