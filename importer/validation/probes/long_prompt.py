"""A prompt that is longer than the context is refused with a sentence, and the engine goes on."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.errors import Refused
from importer.validation.outcome import Fail, NotApplicable, Outcome
from importer.validation.promise import Promise, no_chat
from importer.validation.prompts import Prompt
from importer.validation.prompts.base import user

NAME = "long-prompt"
LESSON = "A prompt beyond the context ended in a crash, or was cut without a word and answered all the same."
MEND = "Set max_model_len to the model's own longest context, or use an engine that takes a shorter one."
LONGEST = 200_000  # tokens: a prompt beyond a longer context takes too long to send and to count


def needs(promise: Promise) -> str | None:
    """A chat, an engine that has a limit, and a document that says which."""
    if promise.context is None:
        return no_chat(promise) or "the document names no longest context"
    far = (
        f"its context of {promise.context:,} tokens is too long to overrun"
        if promise.context > LONGEST
        else None
    )
    return no_chat(promise) or promise.lacks("limit") or far


def run(ctx: Context) -> Outcome:
    """Send more words than there are tokens."""
    context = ctx.promise.context or 0
    prompt = Prompt("long-prompt", (user("again " * (context + 64)),))
    try:
        reply = ctx.ask(prompt, max_tokens=1)
    except Refused as refused:
        return ctx.refused(refused, prompt)
    if ctx.promise.offers is None:
        return NotApplicable("the server takes a prompt of any length")
    return Fail(f"{context + 64:,} words were answered: {reply.content[:80]!r}", "engine", MEND)
