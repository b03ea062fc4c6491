"""The probe of Anthropic's messages: a plain question is answered in text, whole and streamed, events in
order.
"""

from __future__ import annotations

from importer.validation import other_apis
from importer.validation.context import Context
from importer.validation.outcome import Outcome
from importer.validation.probes import no_special_tokens, plain_chat
from importer.validation.prompts import GREETING
from importer.validation.reply import Reply

NAME = "messages"
LESSON = "Special tokens were kept from OpenAI's clients and shown to Anthropic's: that path had no filter."
needs = other_apis.needs_anthropic


def run(ctx: Context) -> Outcome:
    """Judge a greeting, whole and streamed."""
    signs = no_special_tokens.signs(ctx.promise)
    return other_apis.judged(ctx, GREETING, lambda reply: judge(reply, signs))


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting."""
    return no_special_tokens.leak(reply, markers) or plain_chat.judge(reply, markers)
