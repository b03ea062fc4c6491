"""The context that the engine serves is the document's."""

from __future__ import annotations

import json
from enum import StrEnum

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.expectations import Expectations, PromiseReason
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class ContextLengthReason(StrEnum):
    """What ``context-length`` finds."""

    NOT_TOLD = "not-told"
    OTHER = "other"
    SAME = "same"


NAME = "context-length"
LESSON = "A default of ten million tokens failed after ten minutes; others were cut down without a word."


def needs(promise: Expectations) -> Reason | None:
    """Return a document that says how long."""
    return None if promise.context is not None else Reason(PromiseReason.NO_CONTEXT)


def run(ctx: Context) -> Outcome:
    """Return what /v1/models says beside the name, where the engine tells."""
    try:
        listed = json.loads(ctx.client.get("/v1/models", ctx.log))["data"]
        served = next(entry.get("max_model_len") for entry in listed if entry["id"] == ctx.model)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, StopIteration):
        served = None
    return judge(served, ctx.promise.context)


def judge(served: object, promised: int | None) -> Outcome:
    """Return tokens as the engine tells them, and as the document does."""
    if not isinstance(served, int) or isinstance(served, bool):
        return NotApplicable(Reason(ContextLengthReason.NOT_TOLD))
    if served != promised:
        remedy = Reason(Remedy.SET_CONTEXT, served=served, promised=promised)
        return Fail(
            Reason(ContextLengthReason.OTHER, served=served, promised=promised), "configuration", remedy
        )
    return Pass(Reason(ContextLengthReason.SAME, served=served))
