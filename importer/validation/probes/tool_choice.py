"""The probe of ``tool_choice``: a required call, a named call, and none where none is allowed."""

from __future__ import annotations

from importer.decisions.parsers import HF
from importer.reasons import Reason, ReasonKind
from importer.validation.calls import CallReason, judge_call
from importer.validation.context import Context
from importer.validation.expectations import Expectations, no_tools
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import FORBIDDEN, NAMED, REQUIRED, Prompt
from importer.validation.remedy import ALLOW_TOKENS
from importer.validation.reply import Reply
from importer.validation.tool_markup import unended


class ToolChoiceReason(ReasonKind):
    """The reasons of ``tool-choice``."""

    REQUIRED = "required", "a call was required"
    NAMED = "named", "{name} was named"
    AT_LIMIT = "at-limit", "{asked}, and the answer came to the limit of tokens"
    NONE_CAME = "none-came", "{asked}, and none came: {content!r}"
    OTHER_CALLED = "other-called", "{asked}, and {called} was called"
    CALLED = "called", "{asked}: {called}"
    FORBIDDEN_CALLED = "forbidden-called", "tools were forbidden, and {name} was called"
    FORBIDDEN_KEPT = "forbidden-kept", "tools were forbidden: no call"
    PARSER_REJECTS = "parser-rejects", "the parser {parser} rejects a required or named tool choice"


NAME = "tool-choice"
LESSON = "A named tool was ignored by one version of an engine and heard by another, with HTTP 200 by both."


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no tools, or an engine or a parser without the field."""
    rejected = Reason(ToolChoiceReason.PARSER_REJECTS, parser=HF) if promise.tool_parser == HF else None
    return no_tools(promise) or promise.lacks("tool-choice") or rejected


def run(ctx: Context) -> Outcome:
    """Judge three values; return the first that is ignored."""
    required = unended(judge_forced(ctx.first(REQUIRED), REQUIRED, None), REQUIRED, ctx)
    named = unended(judge_forced(ctx.first(NAMED), NAMED, "get_time"), NAMED, ctx)
    forbidden = judge_forbidden(ctx.first(FORBIDDEN))
    outcomes = (required, named, forbidden)
    for kind in (Fail, Inconclusive):
        for outcome in outcomes:
            if isinstance(outcome, kind):
                return outcome
    return Pass(required.reason, trials=3, notes=(named.reason, forbidden.reason))


def judge_forced(reply: Reply, prompt: Prompt, name: str | None) -> Outcome:
    """Judge an answer that must be a call, of the tool ``name`` if there is one."""
    demand = Reason(ToolChoiceReason.REQUIRED) if name is None else Reason(ToolChoiceReason.NAMED, name=name)
    if not reply.tool_calls:
        if reply.finish_reason == "length":
            return Inconclusive(Reason(ToolChoiceReason.AT_LIMIT, asked=demand), "model", ALLOW_TOKENS)
        content = reply.content.strip()[:80]
        return Fail(Reason(ToolChoiceReason.NONE_CAME, asked=demand, content=content), "engine")
    called = reply.tool_calls[0].name
    if name is not None and called != name:
        return Fail(Reason(ToolChoiceReason.OTHER_CALLED, asked=demand, called=called), "engine")
    outcome = judge_call(reply, prompt)
    # Engines end a forced call with either finish_reason, and its arguments are the model's own.
    if isinstance(outcome, Fail) and not outcome.gives(CallReason.NOT_FINISHED):
        return outcome
    return Pass(Reason(ToolChoiceReason.CALLED, asked=demand, called=called))


def judge_forbidden(reply: Reply) -> Outcome:
    """Judge an answer that must not call."""
    if reply.tool_calls:
        return Fail(Reason(ToolChoiceReason.FORBIDDEN_CALLED, name=reply.tool_calls[0].name), "engine")
    return Pass(Reason(ToolChoiceReason.FORBIDDEN_KEPT))
