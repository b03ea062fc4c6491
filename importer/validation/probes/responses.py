"""The probe of OpenAI's responses: a plain question is answered in text, whole and streamed, events in
order.
"""

from __future__ import annotations

from dataclasses import replace

from importer.reasons import Reason
from importer.validation import responses
from importer.validation.context import Context
from importer.validation.outcome import Outcome, Pass
from importer.validation.probes import no_special_tokens, plain_chat
from importer.validation.prompts import GREETING
from importer.validation.reply import Reply
from importer.validation.responses_reply import ResponsesReason, numbered

NAME = "responses"
LESSON = "A stream ended in a text that none of its pieces had held: the thought once more, as the answer."
needs = responses.needs


def run(ctx: Context) -> Outcome:
    """Judge a greeting, whole and streamed."""
    signs = no_special_tokens.signs(ctx.promise)
    return responses.judged(ctx, GREETING, lambda reply: judge(reply, signs))


def judge(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting; a stream without any number is noted."""
    outcome = no_special_tokens.leak(reply, markers) or plain_chat.judge(reply, markers)
    if isinstance(outcome, Pass) and len(reply.raw) > 1 and not numbered(reply):
        return replace(outcome, notes=(*outcome.notes, Reason(ResponsesReason.UNNUMBERED)))
    return outcome
