"""``tool_choice`` is kept: a call where one is required, the one that is named, none where none may be."""

from __future__ import annotations

from importer.validation.calls import judge_call
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.promise import Promise, no_tools
from importer.validation.prompts import FORBIDDEN, NAMED, REQUIRED, Prompt
from importer.validation.reply import Reply
from importer.validation.thoughts import unended

NAME = "tool-choice"
LESSON = "A named tool was ignored by one version of an engine and heard by another, with HTTP 200 by both."


def needs(promise: Promise) -> str | None:
    """Tools, and an engine whose server knows the field."""
    return no_tools(promise) or promise.lacks("tool-choice")


def run(ctx: Context) -> Outcome:
    """Ask in three ways; the first that is not kept is told."""
    required = unended(judge_forced(ctx.first(REQUIRED), REQUIRED, None), REQUIRED, ctx)
    named = unended(judge_forced(ctx.first(NAMED), NAMED, "get_time"), NAMED, ctx)
    forbidden = judge_forbidden(ctx.first(FORBIDDEN))
    outcomes = (required, named, forbidden)
    for kind in (Fail, Inconclusive):
        for outcome in outcomes:
            if isinstance(outcome, kind):
                return outcome
    return Pass("; ".join(o.reason for o in outcomes), trials=3)


def judge_forced(reply: Reply, prompt: Prompt, name: str | None) -> Outcome:
    """An answer that has to be a call, of the tool ``name`` if there is one."""
    asked = "a call was required" if name is None else f"{name} was named"
    if not reply.tool_calls:
        if reply.finish_reason == "length":
            return Inconclusive(
                f"{asked}, and the answer came to the limit of tokens", "model", "Allow more tokens."
            )
        return Fail(f"{asked}, and none came: {reply.content.strip()[:80]!r}", "engine")
    called = reply.tool_calls[0].name
    if name is not None and called != name:
        return Fail(f"{asked}, and {called} was called", "engine")
    outcome = judge_call(reply, prompt)
    # Engines end a forced call with either word, and what it asks for is the model's own.
    if isinstance(outcome, Fail) and "finish_reason" not in outcome.reason:
        return outcome
    return Pass(f"{asked}: {called}")


def judge_forbidden(reply: Reply) -> Outcome:
    """An answer that must not call."""
    if reply.tool_calls:
        return Fail(f"tools were forbidden, and {reply.tool_calls[0].name} was called", "engine")
    return Pass("tools were forbidden: no call")
