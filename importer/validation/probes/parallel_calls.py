"""The probe of parallel calls: two in one answer arrive, each whole, with an index and an id of its own."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.calls import both_ways, judge_call, plain
from importer.validation.context import Context
from importer.validation.expectations import no_tools
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import TWO_CITIES
from importer.validation.remedy import OTHER_TOOL_PARSER
from importer.validation.reply import Reply


class ParallelCallsReason(ReasonKind):
    """The reasons of ``parallel-calls``."""

    SHARED = "shared", "{count} calls share an id or an index"
    ARRIVED = "arrived", "{count} calls: {names}"
    LOST = "lost", "the model wrote a call for {name} and it did not arrive"
    ONE_AT_A_TIME = "one-at-a-time", "the model calls one tool at a time"


NAME = "parallel-calls"
LESSON = "Of two calls the second was lost, or both shared an index, and clients ran one of them twice."
needs = no_tools


def run(ctx: Context) -> Outcome:
    """Request two calls at once; where one arrives, judge the text of the model."""
    outcome = both_ways(ctx, TWO_CITIES, judge)
    if not isinstance(outcome, NotApplicable):
        return outcome
    seen = ctx.look(TWO_CITIES)
    return outcome if seen is None else ctx.noted(TWO_CITIES, judge, judge(seen))


def judge(reply: Reply) -> Outcome:
    """Judge an answer to a question that needs two calls."""
    one = judge_call(reply, TWO_CITIES)
    if not isinstance(one, Pass):
        return one
    calls, cities = reply.tool_calls, TWO_CITIES.expects
    if len({c.id for c in calls}) < len(calls) or len({c.index for c in calls}) < len(calls):
        return Fail(Reason(ParallelCallsReason.SHARED, count=len(calls)), "engine")
    called = [city for city in cities if any(city in plain(c.arguments) for c in calls)]
    if len(called) == len(cities):
        return Pass(Reason(ParallelCallsReason.ARRIVED, count=len(calls), names=", ".join(called)))
    name = calls[0].name
    if reply.written.count(name) > len(calls) and all(city in reply.written.casefold() for city in cities):
        lost = next(city for city in cities if city not in called)
        return Fail(Reason(ParallelCallsReason.LOST, name=lost), "configuration", OTHER_TOOL_PARSER)
    return NotApplicable(Reason(ParallelCallsReason.ONE_AT_A_TIME))
