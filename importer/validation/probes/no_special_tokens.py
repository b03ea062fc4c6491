"""The probe of special tokens: no markup reaches a client, whole or streamed, in content, reasoning or
arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import CommonReason, Expectations, no_chat, no_tools
from importer.validation.outcome import Fail, Outcome, Pass, asks_for
from importer.validation.prompts import GREETING, WEATHER, WEATHER_ANSWERED
from importer.validation.remedy import OTHER_REASONING_PARSER, OTHER_TOOL_PARSER, Remedy
from importer.validation.rendering import streaming_fault
from importer.validation.reply import Reply
from importer.validation.tool_markup import call_markup, control_token, drafted, thinking_markup, undecoded


class SpecialTokensReason(ReasonKind):
    """The reasons of ``no-special-tokens``."""

    NONE = "none", "no markup in what is served"
    PIECES = "pieces", "pieces of words as {piece!r} are in the {place}"
    CALL_MARKER = "call-marker", "the call marker {marker} is in the {place}"
    STOPS_AND_SHOWS = "stops-and-shows", "the engine stops at {token} and shows it in the {place}"
    STRAY = "stray", "{token} is in the {place}"
    ONLY_STREAMED = "only-streamed", "only when streamed"


NAME = "no-special-tokens"
LESSON = (
    "End-of-turn tokens leaked in one of two streaming paths and not in the other; nobody looked at both."
)
CLEAN = Pass(Reason(SpecialTokensReason.NONE))
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Judge the answers to a greeting and, with tools, to a tool's question and its result."""
    prompts = [GREETING] if no_tools(ctx.promise) else [GREETING, WEATHER, WEATHER_ANSWERED]
    for prompt in prompts:
        leaks = [leak(ctx.first(prompt, stream=stream), signs(ctx.promise)) for stream in (False, True)]
        if leaks[1] and not leaks[0]:
            note = Reason(SpecialTokensReason.ONLY_STREAMED)
            failure = replace(leaks[1], notes=(*leaks[1].notes, note), trials=len(prompts) * 2)
            if asks_for(failure, Remedy.DECLARE):  # whole answers hide it, and go on behind it
                return failure
            return streaming_fault(ctx, prompt, failure)
        if leaks[0]:
            return ctx.noted(prompt, lambda reply: leak(reply, signs(ctx.promise)) or CLEAN, leaks[0])
    return replace(CLEAN, trials=len(prompts) * 2)


def signs(promise: Expectations) -> tuple[str, ...]:
    """Return the texts that no client may see: the proof's markers and the document's stop words."""
    stops = promise.client_sampling.get("stop") or ()
    return (*promise.markers, *((stops,) if isinstance(stops, str) else map(str, stops)))


def leak(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | None:
    """Return the failure of the first markup in a reply, with its attribution."""
    for place, text in _texts(reply):
        if piece := undecoded(text):
            remedy = Reason(Remedy.FETCH_TOKENIZER_JSON)
            return Fail(Reason(SpecialTokensReason.PIECES, piece=piece, place=place), "configuration", remedy)
        # A block that no parser took is the document's; a lone token is what this probe is for.
        if marker := thinking_markup(text):
            return Fail(Reason(CommonReason.THINKING_MARKER, marker=marker, place=place), "configuration",
                        OTHER_REASONING_PARSER)  # fmt: skip
        thought = place == "reasoning" and bool(reply.tool_calls or drafted(text, reply.content))
        if (marker := call_markup(text)) and not thought:
            return Fail(Reason(SpecialTokensReason.CALL_MARKER, marker=marker, place=place), "configuration",
                        OTHER_TOOL_PARSER)  # fmt: skip
        if token := control_token(text, markers):
            return _stray(token, place, text, reply)
    return None


def _stray(token: str, place: str, text: str, reply: Reply) -> Fail:
    if reply.finish_reason == "stop" and text.rstrip().endswith(token):
        return Fail(Reason(SpecialTokensReason.STOPS_AND_SHOWS, token=token, place=place), "engine")
    return Fail(
        Reason(SpecialTokensReason.STRAY, token=token, place=place),
        "configuration",
        Reason(Remedy.DECLARE, token=token),
    )


def _texts(reply: Reply) -> Iterator[tuple[str, str]]:
    yield "content", reply.content
    yield "reasoning", reply.reasoning
    for call in reply.tool_calls:
        yield "call's name", call.name
        yield "call's arguments", call.arguments
