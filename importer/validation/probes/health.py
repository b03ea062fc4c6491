"""The probe of health: the engine answers that it is up."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.signals import evidence
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations
from importer.validation.outcome import Outcome, Pass


class HealthReason(ReasonKind):
    """The reasons of ``health``."""

    MODELS_ANSWER = "models-answer", "/v1/models answers"
    ANSWERS = "answers", "/health answers"


NAME = "health"
LESSON = "Engines die during start-up for reasons that look like something else; ask before probing further."
TASKS = evidence.TASKS  # of every model


def needs(_promise: Expectations) -> Reason | None:
    """Return ``None``: every engine has an answer."""
    return None


def run(ctx: Context) -> Outcome:
    """GET /health; of an unknown server the list of models is as good."""
    try:
        ctx.client.get("/health", ctx.log)
    except RequestRefused:
        if not ctx.promise.remote:
            raise
        ctx.client.get("/v1/models", ctx.log)
        return Pass(Reason(HealthReason.MODELS_ANSWER))
    return Pass(Reason(HealthReason.ANSWERS))
