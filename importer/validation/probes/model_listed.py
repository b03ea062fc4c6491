"""The probe of the list of models: it has the name that requests use."""

from __future__ import annotations

import json

from importer.reasons import Reason, ReasonKind
from importer.signals import evidence
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.remedy import Remedy


class ModelListedReason(ReasonKind):
    """The reasons of ``model-listed``."""

    NO_LIST = "no-list", "/v1/models is not a list of models"
    ABSENT = "absent", "{model} is not among the models listed: {listed}"
    LISTED = "listed", "{model} is listed"


NAME = "model-listed"
LESSON = "Clients pick the name from /v1/models; a wrong served name is a 404 for every one of them."
TASKS = evidence.TASKS  # of every model


def needs(_promise: Expectations) -> Reason | None:
    """Return ``None``: every engine lists its models."""
    return None


def run(ctx: Context) -> Outcome:
    """GET /v1/models and compare the names."""
    try:
        answer = json.loads(ctx.client.get("/v1/models", ctx.log))
        names = [entry["id"] for entry in answer["data"]]
    except (ValueError, RecursionError, KeyError, TypeError):
        return Fail(Reason(ModelListedReason.NO_LIST), "engine")
    if ctx.model not in names:
        listed = tuple(map(str, names[:20]))
        remedy = Reason(Remedy.ASK_BY_NAME, listed=listed) if names else None
        return Fail(Reason(ModelListedReason.ABSENT, model=ctx.model, listed=listed), "configuration", remedy)
    return Pass(Reason(ModelListedReason.LISTED, model=ctx.model))
