"""The probe of long prompts: one beyond the context is refused with a message, and the engine goes on."""

from __future__ import annotations

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations, PromiseReason, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome
from importer.validation.prompts import Prompt, user
from importer.validation.remedy import Remedy


class LongPromptReason(ReasonKind):
    """The reasons of ``long-prompt``."""

    TOO_LONG = "too-long", "its context of {context:,} tokens is too long to overrun"
    ANY_LENGTH = "any-length", "the server takes a prompt of any length"
    ANSWERED = "answered", "{words:,} words were answered: {content!r}"


NAME = "long-prompt"
LESSON = "A prompt beyond the context ended in a crash, or was cut without a word and answered all the same."
REMEDY = Reason(Remedy.SET_LONGEST)
LONGEST = 200_000  # tokens: a prompt beyond a longer context takes too long to send and to count


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, no limit in engine or document, or a limit too large to
    exceed.
    """
    if promise.context is None:
        return no_chat(promise) or Reason(PromiseReason.NO_CONTEXT)
    far = Reason(LongPromptReason.TOO_LONG, context=promise.context) if promise.context > LONGEST else None
    return no_chat(promise) or promise.lacks("limit") or far


def run(ctx: Context) -> Outcome:
    """Send more words than the context has tokens."""
    context = ctx.promise.context or 0
    prompt = Prompt("long-prompt", (user("again " * (context + 64)),))
    try:
        reply = ctx.ask(prompt, max_tokens=1)
    except RequestRefused as refused:
        return ctx.refused(refused, prompt)
    if ctx.promise.remote:
        return NotApplicable(Reason(LongPromptReason.ANY_LENGTH))
    return Fail(
        Reason(LongPromptReason.ANSWERED, words=context + 64, content=reply.content[:80]), "engine", REMEDY
    )
