"""Experiments: a remedy is tried by request before it is told; one that does not help is not told."""

from __future__ import annotations

from dataclasses import replace

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.fact import Rung, broken_in_answer
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass, Tried, counts_as_passed
from importer.validation.probe import Probe
from importer.validation.probes.tools import judge_forced, needs_tool_choice
from importer.validation.prompts import Prompt
from importer.validation.remedy import Remedy

# Changes that the reading of a text without the server has shown already: ``stage_cause`` tells no other.
READ = (Remedy.SET_PARSER, Remedy.SET_PARSER_TYPE, Remedy.LEAVE_OUT_PARSER)
CALLS = "tools"  # the ability that a required call can stand in for


def tried(outcome: Outcome, one: Probe, ctx: Context) -> Outcome:
    """Return the outcome with what came of its remedy, or of the one that a request can offer."""
    if counts_as_passed(outcome) or not isinstance(outcome, Fail | Inconclusive) or outcome.tried is not None:
        return outcome
    broken = broken_in_answer(outcome.facts)
    if outcome.remedy is not None and outcome.remedy.kind in READ:
        seen = broken is not None and broken.rung is Rung.PARSED
        return replace(outcome, tried=Tried(1, 1)) if seen else outcome
    wrong = ctx.judged_wrong[-1] if ctx.judged_wrong else None
    if outcome.attribution != "model" or one.ability != CALLS or wrong is None or outcome.remedy is not None:
        return outcome
    return _required(outcome, wrong.prompt, ctx)


def _required(outcome: Fail | Inconclusive, prompt: Prompt, ctx: Context) -> Outcome:
    """Require the call that the model does not make by itself."""
    if not prompt.tools or needs_tool_choice(ctx.promise) is not None:
        return outcome
    try:
        reply = ctx.ask(prompt, tool_choice="required")
    except ExchangeError:
        return outcome
    right = isinstance(judge_forced(reply, prompt, None), Pass)
    return replace(outcome, remedy=Reason(Remedy.REQUIRE_CALLS), tried=Tried(1, 1)) if right else outcome
