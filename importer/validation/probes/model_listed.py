"""The model is listed under the name that requests use."""

from __future__ import annotations

import json

from importer.validation.context import Context
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.promise import Promise

NAME = "model-listed"
LESSON = "Clients pick the name from /v1/models; a wrong served name is a 404 for every one of them."


def needs(_promise: Promise) -> str | None:
    """Every engine lists its models."""
    return None


def run(ctx: Context) -> Outcome:
    """GET /v1/models and look for the name."""
    try:
        answer = json.loads(ctx.client.get("/v1/models", ctx.log))
        names = [entry["id"] for entry in answer["data"]]
    except (ValueError, RecursionError, KeyError, TypeError):
        return Fail("/v1/models is not a list of models", "engine")
    if ctx.model not in names:
        listed = ", ".join(map(str, names))[:300]
        mend = f"Ask for the model by a name that is listed: {listed}." if names else ""
        return Fail(f"{ctx.model} is not among the models listed: {listed}", "configuration", mend)
    return Pass(f"{ctx.model} is listed")
