"""A base model goes on from a text."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.outcome import Inconclusive, Outcome, Pass
from importer.validation.promise import Promise, no_chat

NAME = "plain-completion"
LESSON = "Base models were imported with a chat template and parsers, though they only go on from a text."
TEXT = "The capital of France is"
LENGTH = 16  # tokens


def needs(promise: Promise) -> str | None:
    """Chat models are asked as chat models."""
    return None if no_chat(promise) else "the model chats"


def run(ctx: Context) -> Outcome:
    """Ask for a few tokens more."""
    body = {"model": ctx.model, "prompt": TEXT, "max_tokens": LENGTH, **ctx.promise.client_sampling}
    text = ctx.client.complete(body, ctx.log)
    if not text.strip():
        return Inconclusive("the model had nothing to add", "model")
    return Pass(f"went on {text.strip()[:80]!r}")
