"""The probe of streaming: the streamed answer, put together, is the whole answer."""

from __future__ import annotations

import json

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import endless
from importer.validation.expectations import no_chat, no_tools
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.prompts import GREETING, WEATHER, Prompt
from importer.validation.remedy import WHOLE_ANSWERS
from importer.validation.rendering import streaming_fault
from importer.validation.reply import Reply


class StreamReason(ReasonKind):
    """The reasons of ``stream-equals-whole``."""

    NOT_DONE = "not-done", "the stream ends without [DONE]"
    ALIKE = "alike", "both are alike"
    SAME_ONES = "same-ones", "answers vary from one to the next; both ways give the same ones"
    SAME_PARTS = "same-parts", "answers vary from one to the next; both ways give the same parts"
    DIFFERS = "differs", "{name} differs: whole {whole!r}, streamed {streamed!r}"


NAME = "stream-equals-whole"
LESSON = (
    "Streaming paths lose calls, braces and reasoning: one parser emptied 27 of 64 splits, with HTTP 200."
)
REPEATS = 2  # further answers: a difference of the path repeats, one of random draws does not
needs = no_chat

Form = tuple[object, ...]


def run(ctx: Context) -> Outcome:
    """Compare a plain question and, with tools, one that calls a tool."""
    prompts = [GREETING] if no_tools(ctx.promise) else [GREETING, WEATHER]
    outcomes = [_compare(ctx, prompt) for prompt in prompts]
    flawed = [o for o in outcomes if not isinstance(o, Pass)]
    if flawed:
        return flawed[0]
    first, *notes = dict.fromkeys(o.reason for o in outcomes)
    return Pass(first, trials=len(outcomes), notes=tuple(notes))


def _compare(ctx: Context, prompt: Prompt) -> Outcome:
    whole, streamed = ctx.first(prompt), ctx.first(prompt, stream=True)
    if "length" in (whole.finish_reason, streamed.finish_reason):
        return endless(whole)  # what follows a missed end is babble, never twice the same
    if not streamed.ended:
        return Fail(Reason(StreamReason.NOT_DONE), "engine", WHOLE_ANSWERS, trials=2)
    if form(whole) == form(streamed):
        return Pass(Reason(StreamReason.ALIKE))
    wholes = [whole, *(ctx.ask(prompt) for _ in range(REPEATS))]
    streams = [streamed, *(ctx.ask(prompt, stream=True) for _ in range(REPEATS))]
    if {form(w) for w in wholes} & {form(s) for s in streams}:
        return Pass(Reason(StreamReason.SAME_ONES), trials=1 + REPEATS)
    repeats_itself = len({form(w) for w in wholes}) == 1
    if not repeats_itself and {shape(w) for w in wholes} & {shape(s) for s in streams}:
        return Pass(Reason(StreamReason.SAME_PARTS), trials=1 + REPEATS)
    failure = Fail(difference(whole, streamed), "engine", trials=1 + REPEATS)

    def like_the_whole(reply: Reply) -> Outcome:
        return Pass(Reason(StreamReason.ALIKE)) if form(reply) == form(whole) else failure

    return ctx.noted(prompt, like_the_whole, streaming_fault(ctx, prompt, failure), stream=True)


def form(reply: Reply) -> Form:
    """Return the parts that must be equal: all but ids and white space at the edges."""
    calls = tuple((c.name, _canonical(c.arguments)) for c in reply.tool_calls)
    return reply.content.strip(), reply.reasoning.strip(), calls, reply.finish_reason


def shape(reply: Reply) -> Form:
    """Return the parts that an answer has, for a comparison of sampled answers."""
    calls = tuple(c.name for c in reply.tool_calls)
    return bool(reply.content.strip()), bool(reply.reasoning.strip()), calls, reply.finish_reason


def difference(whole: Reply, streamed: Reply) -> Reason:
    """Return the first part that differs, both sides quoted."""
    names = ("content", "reasoning", "tool calls", "finish_reason")
    for name, a, b in zip(names, form(whole), form(streamed), strict=True):
        if a != b:
            return Reason(StreamReason.DIFFERS, name=name, whole=str(a)[:120], streamed=str(b)[:120])
    return Reason(StreamReason.ALIKE)


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
