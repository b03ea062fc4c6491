"""Judgments that several judges share: text that no parser read, what a prompt leaves out, streams alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from importer.frozen import frozen
from importer.reasons import Reason
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
    differs,
    failing,
    named,
    needless,
    not_done,
    note,
    quoted,
)
from importer.validation.prompts import (
    NAME_RECALL,
    ROUNDS,
    SUM,
    SYSTEM,
    SYSTEM_LONGER,
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_ANSWERED_LONGER,
    WEATHER_CALLED_LONGER,
    WEATHER_TWO_TOOLS,
    Prompt,
)
from importer.validation.remedy import (
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

ANOTHER_READ = note("the template would render it, and the engine reads another one")
STREAMED = "streamed"  # the part of a probe that is wrong in pieces alone
LONGER = 20  # characters by which the longer of two compared conversations is longer at least


def swallowed(reply: Reply) -> bool:
    """Return whether the engine counts more tokens than an empty answer's end and shows none of them."""
    empty = not (reply.content.strip() or reply.reasoning.strip() or reply.tool_calls)
    return empty and (reply.usage.completion or 0) > 4


def swallowing(reply: Reply) -> Fail:
    """Return the fault of a parser that shows nothing of what the model wrote."""
    return differs(
        "an answer", "nothing", f"the {reply.usage.completion} tokens that are counted", Stage.PARSED
    )


def miswritten(what: str, came: object, expected: object, need: Need, **more: Any) -> Fail:
    """Return the fault of a chat template, as a comparison of its texts has it."""
    return differs(what, came, expected, Stage.TEMPLATE, template(need), **more)


def misread(what: str, came: object, expected: object) -> Fail:
    """Return the fault of a reasoning parser that does not read the model."""
    return differs(what, came, expected, Stage.PARSED, OTHER_REASONING_PARSER)


def thought_shown(place: str, text: str) -> Fail | None:
    """Return the fault of a thinking marker in a part of an answer."""
    marker = thinking_markup(text)
    return None if marker is None else misread(f"a thinking marker in the {place}", quoted(marker), None)


def all_thought(content: str) -> Fail:
    """Return the fault of an answer that stands among the thoughts, and in the content at most once more."""
    return misread("the answer", "reasoning and content" if content else "reasoning alone", "content")


def endless(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | Inconclusive:
    """Return why an answer went on to the limit: an end token unknown to the engine, or a model that writes
    on.
    """
    text = reply.reasoning + reply.content + reply.written
    token = control_token(text, markers)
    if token is not None or next_turn(text):
        what = f"past {quoted(token)}" if token else "with another turn"
        return differs("an answer that goes on", what, None, Stage.TOKENS, end_at(token))
    if reply.content.strip():
        return Inconclusive(Reason(CommonReason.STILL_WRITING), Stage.DRAWN)
    return not_done("the model was still thinking at the limit of tokens")


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


@frozen
class Part:
    """A part of requests: two prompts of which the second has more of it.

    ``need``    what a template has to do for it.
    ``needed``  whether every vendor's template has a place for it.
    """

    name: str
    prompts: tuple[Prompt, Prompt]
    need: Need
    needed: bool = True


TOOLS = Part("tools", (WEATHER, WEATHER_TWO_TOOLS), Need.RENDER_TOOLS)
RESULTS = Part("results", (WEATHER_ANSWERED, WEATHER_ANSWERED_LONGER), Need.RENDER_TOOL_ROLE, needed=False)
CALLS = Part("earlier calls", (WEATHER_ANSWERED, WEATHER_CALLED_LONGER), Need.RENDER_CALLS, needed=False)
TURNS = Part("earlier turns", (SUM, NAME_RECALL), Need.RENDER_TURNS)
ROUND = Part("earlier turns", (ROUNDS[0], ROUNDS[1]), Need.RENDER_TURNS)
SYSTEM_WORDS = Part("words of the system", (SYSTEM, SYSTEM_LONGER), Need.RENDER_SYSTEM_ROLE, needed=False)


def unseen(ctx: Context, part: Part) -> Fail | NotApplicable | None:
    """Return the fault where more of a part makes a prompt no longer; ``None`` if nothing is counted."""
    one, other = (ctx.first(prompt).usage.prompt for prompt in part.prompts)
    return None if one is None or other is None or other > one else left_out(ctx, part, one)


def left_out(ctx: Context, part: Part, counted: int | None) -> Fail | NotApplicable:
    """Return a fault of the template, unless it renders the difference between the two prompts.

    Then the engine is at fault, or it reads another template of the repository. A vendor's own template may
    have no place for what is not needed. ``counted``  tokens of both prompts.
    """
    one, other = (ctx.rendered(prompt) for prompt in part.prompts)
    missed = partial(differs, f"prompt_tokens with more {part.name}", counted, "more", trials=2)
    if one is None or other is None or len(other) < len(one) + LONGER or ctx.render is None:
        if one is not None and other is not None and not part.needed and proof_check.of_import(ctx):
            return needless(f"the template has no place for {part.name}")
        return missed(Stage.START, template(part.need))
    if ctx.render.others:
        same = Reason(Remedy.ONE_TEMPLATE, files=ctx.render.others)
        return missed(Stage.TEMPLATE, same, notes=(ANOTHER_READ,))
    return missed(Stage.PROMPT, Reason(Remedy.OTHER_VERSION_TEMPLATE))


def only_streamed(outcome: Outcome) -> Outcome:
    """Return the outcome of a streamed answer, with the note that the whole one is right."""
    return named(replace(outcome, notes=(*outcome.notes, note("the whole answer is right"))), STREAMED)


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
