"""The engine says that it is up."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.outcome import Outcome, Pass
from importer.validation.promise import Promise

NAME = "health"
LESSON = "Engines die during start-up for reasons that look like something else; ask before probing further."


def needs(_promise: Promise) -> str | None:
    """Every engine answers it."""
    return None


def run(ctx: Context) -> Outcome:
    """GET /health."""
    ctx.client.get("/health", ctx.log)
    return Pass("/health answers")
