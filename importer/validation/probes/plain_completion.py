"""The probe of a base model: it continues a text."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations, no_chat
from importer.validation.outcome import Inconclusive, Outcome, Pass


class CompletionReason(ReasonKind):
    """The reasons of ``plain-completion``."""

    CHATS = "chats", "the model chats"
    NOTHING = "nothing", "the model had nothing to add"
    WENT_ON = "went-on", "went on {text!r}"


NAME = "plain-completion"
LESSON = "Base models were imported with a chat template and parsers, though they only go on from a text."
TEXT = "The capital of France is"
LENGTH = 16  # tokens


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: the model chats."""
    return None if no_chat(promise) else Reason(CompletionReason.CHATS)


def run(ctx: Context) -> Outcome:
    """Request a few tokens more."""
    body = {"model": ctx.model, "prompt": TEXT, "max_tokens": LENGTH, **ctx.promise.client_sampling}
    text = ctx.client.complete(body, ctx.log)
    if not text.strip():
        return Inconclusive(Reason(CompletionReason.NOTHING), "model")
    return Pass(Reason(CompletionReason.WENT_ON, text=text.strip()[:80]))
