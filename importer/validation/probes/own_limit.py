"""A request without a limit of its own is answered to the end."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.promise import no_chat
from importer.validation.prompts import COUNT
from importer.validation.reply import Reply

NAME = "own-limit"
LESSON = "Clients that sent no max_tokens got the engine's own few, and took half an answer for a whole one."
CAPPED = "Raise max_tokens in parameters, or max_model_len: every answer is cut there."
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Ask without max_tokens what is answered to the end with one."""
    return judge(ctx.ask(COUNT, max_tokens=None), ctx.first(COUNT), ctx.promise.max_tokens)


def judge(reply: Reply, full: Reply, allowed: int) -> Outcome:
    """An answer to a request without a limit, beside one to a request that allowed so many tokens."""
    if full.finish_reason == "length":
        if full.usage.completion is not None and full.usage.completion < allowed:
            reason = f"answers are cut after {full.usage.completion} tokens where {allowed} are allowed"
            return Fail(reason, "configuration", CAPPED)
        return NotApplicable("the answer comes to any limit: see plain-chat")
    if reply.finish_reason == "length":
        tokens = "few" if reply.usage.completion is None else reply.usage.completion
        return Fail(
            f"without max_tokens in the request an answer is cut after {tokens} tokens",
            "configuration",
            "Raise max_tokens in parameters.",
        )
    if not (reply.content.strip() or reply.reasoning.strip()):
        return Inconclusive("the answer is empty", "model")
    return Pass(f"ends by itself, finish_reason {reply.finish_reason!r}")
