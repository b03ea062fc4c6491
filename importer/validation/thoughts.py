"""Thoughts that the model itself does not end: what an engine makes of them is not its fault."""

from __future__ import annotations

from importer.reasons import Reason
from importer.validation.common import CommonReason
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome
from importer.validation.prompts import SUM, Prompt
from importer.validation.signs import closing_marker, thinking_markup, untagged

TURN_BEGUN = 40  # characters at the end of a prompt in which a thought may be opened


def endless(ctx: Context, prompt: Prompt) -> bool:
    """Whether the model thinks, and says nothing after it, where it goes on from the rendered prompt."""
    written = ctx.raw(prompt, max_tokens=ctx.promise.max_tokens)
    if written is None:
        return False
    begun = (ctx.rendered(prompt) or "")[-TURN_BEGUN:]
    opened = thinking_markup(begun) is not None and closing_marker(begun) is None
    closing = closing_marker(written)
    if not opened and thinking_markup(written) is None:
        return False
    return closing is None or not untagged(written.rpartition(closing)[2]).strip()


def unended(outcome: Outcome, prompt: Prompt, ctx: Context) -> Outcome:
    """The verdict on an answer that has to follow a thought, where the model by itself ends none.

    What an engine holds to a form begins behind the thought's end. Nothing is said of models whose markers
    are not seen in an answer to a plain question either.
    """
    if not isinstance(outcome, Fail) or outcome.attribution != "engine" or not ctx.promise.reasoning_parser:
        return outcome
    written = ctx.raw(prompt)
    if written is None or closing_marker(written) is not None or closing_marker(ctx.raw(SUM) or "") is None:
        return outcome
    note = Reason(CommonReason.UNENDED)
    within, notes = outcome.within, (*outcome.notes, note)
    return Inconclusive(outcome.reason, "model", trials=2, within=within, notes=notes)
