"""Judgments that several judges share: text that no parser read, what a prompt leaves out, streams alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation import mutations, proof_check
from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.expectations import CommonReason
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Stage,
    failing,
    named,
)
from importer.validation.prompts import (
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_ANSWERED_LONGER,
    WEATHER_TWO_TOOLS,
    Prompt,
)
from importer.validation.remedy import (
    END_TOKEN,
    NO_REASONING_PARSER,
    OTHER_REASONING_PARSER,
    OTHER_TOOL_PARSER,
    WHOLE_ANSWERS,
    Need,
    Remedy,
    end_at,
    template,
)
from importer.validation.reply import Reply
from importer.validation.tool_markup import (
    control_token,
    drafted,
    looks_like_call,
    next_turn,
    outside,
    thinking_markup,
    thinks,
)

LONGER = 20  # characters by which the longer of two compared conversations is longer at least


def swallowed(reply: Reply) -> bool:
    """Return whether the engine counts more tokens than an empty answer's end and shows none of them."""
    empty = not (reply.content.strip() or reply.reasoning.strip() or reply.tool_calls)
    return empty and (reply.usage.completion or 0) > 4


def misread(kind: ReasonKind, **fields: Any) -> Fail:
    """Return the fault of a reasoning parser that does not read the model."""
    return Fail(Reason(kind, **fields), Stage.PARSED, OTHER_REASONING_PARSER)


def thought_shown(place: str, text: str) -> Fail | None:
    """Return the fault of a thinking marker in a part of an answer."""
    marker = thinking_markup(text)
    return None if marker is None else misread(CommonReason.THINKING_MARKER, marker=marker, place=place)


def endless(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | Inconclusive:
    """Return why an answer went on to the limit: an end token unknown to the engine, or a model that writes
    on.
    """
    text = reply.reasoning + reply.content + reply.written
    token = control_token(text, markers)
    if token is not None:
        return Fail(Reason(CommonReason.GOES_ON, token=token), Stage.TOKENS, end_at(token))
    if next_turn(text):
        return Fail(Reason(CommonReason.NEXT_TURN), Stage.TOKENS, END_TOKEN)
    still = CommonReason.STILL_WRITING if reply.content.strip() else CommonReason.STILL_THINKING
    return Inconclusive(Reason(still), Stage.DRAWN)


def unread(reply: Reply, prompt: Prompt) -> Reason | None:
    """Return the markup of the model that no parser read; ``None`` where there is none, or its tokens are
    hidden.
    """
    behind = outside(reply.written, reply.reasoning if drafted(reply.reasoning, reply.content) else "")
    if looks_like_call(behind, prompt.tools) and not reply.tool_calls:
        return Reason(CommonReason.CALL_UNREAD)
    if thinks(reply.written) and not reply.reasoning.strip():
        return Reason(CommonReason.THOUGHT_UNREAD)
    return None


def tools_unseen(ctx: Context) -> Fail | NotApplicable | None:
    """Return the fault where two tools make a prompt no longer than one; ``None`` if nothing is counted."""
    reason = Reason(CommonReason.TOOLS_UNSEEN)
    return unseen(ctx, (WEATHER, WEATHER_TWO_TOOLS), reason, template(Need.RENDER_TOOLS))


def results_unseen(ctx: Context) -> Fail | NotApplicable | None:
    """Return the fault where a longer result makes the prompt no longer; ``None`` if nothing is counted."""
    reason = Reason(CommonReason.RESULT_UNSEEN)
    remedy = template(Need.RENDER_TOOL_ROLE)
    return unseen(ctx, (WEATHER_ANSWERED, WEATHER_ANSWERED_LONGER), reason, remedy, needed=False)


def unseen(
    ctx: Context, prompts: tuple[Prompt, Prompt], reason: Reason, remedy: Reason, *, needed: bool = True
) -> Fail | NotApplicable | None:
    """Return the fault where a longer conversation is no longer a prompt; ``None`` if nothing is counted."""
    counted = (ctx.first(prompt) for prompt in prompts)
    return left_out(ctx, prompts, reason, remedy, needed=needed) if same_length(*counted) else None


def left_out(
    ctx: Context, prompts: tuple[Prompt, Prompt], reason: Reason, remedy: Reason, *, needed: bool = True
) -> Fail | NotApplicable:
    """Return a fault of the template, unless it renders the difference between the two prompts.

    Then the engine is at fault, or it reads another template of the repository. What is not ``needed``, a
    vendor's own template may have no place for.
    """
    one, other = (ctx.rendered(prompt) for prompt in prompts)
    if one is None or other is None or len(other) < len(one) + LONGER or ctx.render is None:
        if one is not None and other is not None and not needed and proof_check.of_import(ctx):
            return NotApplicable(reason)
        return Fail(reason, Stage.START, remedy, trials=2)
    if ctx.render.others:
        same = Reason(Remedy.ONE_TEMPLATE, files=ctx.render.others)
        return Fail(reason, Stage.TEMPLATE, same, trials=2, notes=(Reason(CommonReason.ANOTHER_READ),))
    withheld = Reason(Remedy.OTHER_VERSION_TEMPLATE)
    return Fail(reason, Stage.PROMPT, withheld, trials=2, notes=(Reason(CommonReason.LEFT_OUT),))


def same_length(one: Reply, other: Reply) -> bool:
    """Return whether the engine counts the same number of prompt tokens for both."""
    return one.usage.prompt is not None and one.usage.prompt == other.usage.prompt


def only_streamed(outcome: Outcome) -> Outcome:
    """Return the outcome of a streamed answer, with the note that the whole one is right."""
    note = Reason(CommonReason.WHOLE_IS_RIGHT)
    return named(replace(outcome, notes=(*outcome.notes, note)), "streamed")


def streaming_fault(ctx: Context, prompt: Prompt, outcome: Outcome) -> Fail:
    """Return the fault of streaming: the engine, unless the document names the wrong parser."""
    seen = ctx.look(prompt)
    missed = unread(seen, prompt) if seen is not None else None
    if seen is not None and missed is not None:
        remedy = OTHER_REASONING_PARSER if thinks(seen.written) else OTHER_TOOL_PARSER
        if looks_like_call(seen.written, prompt.tools) and not seen.tool_calls:
            remedy = OTHER_TOOL_PARSER
        return failing(outcome, Stage.PARSED, remedy, missed)
    if proof_check.thinks_never(ctx):
        return failing(outcome, Stage.PARSED, NO_REASONING_PARSER)
    better = proof_check.whole_in_pieces(ctx) if prompt.tools else None
    if better is not None:
        return failing(outcome, Stage.PARSED, better)
    return failing(outcome, Stage.WHOLE, _whole_until(ctx, prompt))


def _whole_until(ctx: Context, prompt: Prompt) -> Reason:
    """Return the remedy for broken streams, with what is changed in them where that is seen."""
    try:
        change = mutations.told(ctx.first(prompt), ctx.first(prompt, stream=True))
    except ExchangeError:
        return WHOLE_ANSWERS
    return WHOLE_ANSWERS if change is None else Reason(Remedy.WHOLE_ANSWERS, change=change)
