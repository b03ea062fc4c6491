"""The probe of the context: the engine serves that of the document."""

from __future__ import annotations

import json

from importer.reasons import Reason, ReasonKind
from importer.signals import evidence
from importer.validation.context import Context
from importer.validation.expectations import Expectations, PromiseReason
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class ContextLengthReason(ReasonKind):
    """The reasons of ``context-length``."""

    NOT_TOLD = "not-told", "the engine does not tell its context"
    OTHER = "other", "it serves {served:,} tokens, the document says {promised:,}"
    SAME = "same", "{served:,} tokens"


NAME = "context-length"
LESSON = "A default of ten million tokens failed after ten minutes; others were cut down without a word."
TASKS = evidence.TASKS  # of every model


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: the document has no context."""
    return None if promise.context is not None else Reason(PromiseReason.NO_CONTEXT)


def run(ctx: Context) -> Outcome:
    """Read ``max_model_len`` beside the name in /v1/models, where the engine reports it."""
    try:
        listed = json.loads(ctx.client.get("/v1/models", ctx.log))["data"]
        served = next(entry.get("max_model_len") for entry in listed if entry["id"] == ctx.model)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, StopIteration):
        served = None
    return judge(served, ctx.promise.context)


def judge(served: object, promised: int | None) -> Outcome:
    """Judge the context that the engine reports, in tokens, beside that of the document."""
    if not isinstance(served, int) or isinstance(served, bool):
        return NotApplicable(Reason(ContextLengthReason.NOT_TOLD))
    if served != promised:
        remedy = Reason(Remedy.SET_CONTEXT, served=served, promised=promised)
        return Fail(
            Reason(ContextLengthReason.OTHER, served=served, promised=promised), "configuration", remedy
        )
    return Pass(Reason(ContextLengthReason.SAME, served=served))
