"""The probe of OpenAI's responses: a plain question is answered in text, whole and streamed, events in
order.
"""

from __future__ import annotations

from dataclasses import replace

from importer.reasons import Reason
from importer.validation import other_apis
from importer.validation.context import Context
from importer.validation.other_apis import ResponsesReason, numbered
from importer.validation.outcome import Outcome, Pass
from importer.validation.probes import no_special_tokens, plain_chat
from importer.validation.prompts import GREETING
from importer.validation.reply import Reply

NAME = "responses"
LESSON = "A stream ended in a text that none of its pieces had held: the thought once more, as the answer."
needs = other_apis.needs_responses


def run(ctx: Context) -> Outcome:
    """Judge a greeting, whole and streamed."""
    signs = no_special_tokens.signs(ctx.promise)
    return other_apis.judged_responses(ctx, GREETING, lambda reply: judge(reply, signs))


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting; a stream without any number is noted."""
    outcome = no_special_tokens.leak(reply, markers) or plain_chat.judge(reply, markers)
    if isinstance(outcome, Pass) and len(reply.raw) > 1 and not numbered(reply):
        return replace(outcome, notes=(*outcome.notes, Reason(ResponsesReason.UNNUMBERED)))
    return outcome
