"""The context that the engine serves is the document's."""

from __future__ import annotations

import json

from importer.validation.context import Context
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.promise import Promise

NAME = "context-length"
LESSON = "A default of ten million tokens failed after ten minutes; others were cut down without a word."


def needs(promise: Promise) -> str | None:
    """A document that says how long."""
    return None if promise.context is not None else "the document names no longest context"


def run(ctx: Context) -> Outcome:
    """What /v1/models says beside the name, where the engine tells."""
    try:
        listed = json.loads(ctx.client.get("/v1/models", ctx.log))["data"]
        served = next(entry.get("max_model_len") for entry in listed if entry["id"] == ctx.model)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, StopIteration):
        served = None
    return judge(served, ctx.promise.context)


def judge(served: object, promised: int | None) -> Outcome:
    """Tokens as the engine tells them, and as the document does."""
    if not isinstance(served, int) or isinstance(served, bool):
        return NotApplicable("the engine does not tell its context")
    if served != promised:
        mend = f"Set max_model_len to {served}, or start the engine with {promised}."
        return Fail(f"it serves {served:,} tokens, the document says {promised:,}", "configuration", mend)
    return Pass(f"{served:,} tokens")
