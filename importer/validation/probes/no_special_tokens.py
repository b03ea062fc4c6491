"""No markup of the model's own reaches a client, whole or streamed, in content, reasoning or arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from importer.validation.blame import OTHER_REASONING_PARSER, OTHER_TOOL_PARSER, streaming_fault
from importer.validation.context import Context
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.promise import Promise, no_chat, no_tools
from importer.validation.prompts import GREETING, WEATHER, WEATHER_ANSWERED
from importer.validation.reply import Reply
from importer.validation.signs import call_markup, control_token, drafted, thinking_markup, undecoded

NAME = "no-special-tokens"
LESSON = (
    "End-of-turn tokens leaked in one of two streaming paths and not in the other; nobody looked at both."
)
DECLARE = "Declare"
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Read the answers to a greeting and, where tools are promised, to a tool's question and its result."""
    prompts = [GREETING] if no_tools(ctx.promise) else [GREETING, WEATHER, WEATHER_ANSWERED]
    for prompt in prompts:
        leaks = [leak(ctx.first(prompt, stream=stream), signs(ctx.promise)) for stream in (False, True)]
        if leaks[1] and not leaks[0]:
            reason, trials = f"{leaks[1].reason}, only when streamed", len(prompts) * 2
            if leaks[1].mend.startswith(DECLARE):  # whole answers hide it, and go on behind it all the same
                return replace(leaks[1], reason=reason, trials=trials)
            return streaming_fault(ctx, prompt, reason, trials)
        if leaks[0]:
            return leaks[0]
    return Pass("no markup in what is served", trials=len(prompts) * 2)


def signs(promise: Promise) -> tuple[str, ...]:
    """What no client may see: the proof's markers and the document's stop words."""
    stops = promise.client_sampling.get("stop") or ()
    return (*promise.markers, *((stops,) if isinstance(stops, str) else map(str, stops)))


def leak(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | None:
    """The first markup in a reply, and whose fault it is."""
    for place, text in _texts(reply):
        if piece := undecoded(text):
            mend = (
                "Fetch tokenizer.json anew: its decoder, which makes text of pieces, is missing or another's."
            )
            return Fail(f"pieces of words as {piece!r} are in the {place}", "configuration", mend)
        # A block that no parser took is the document's; a lone token is what this probe is for.
        if marker := thinking_markup(text):
            return Fail(f"the thinking marker {marker} is in the {place}", "configuration",
                        OTHER_REASONING_PARSER)  # fmt: skip
        thought = place == "reasoning" and bool(reply.tool_calls or drafted(text, reply.content))
        if (marker := call_markup(text)) and not thought:
            return Fail(f"the call marker {marker} is in the {place}", "configuration",
                        OTHER_TOOL_PARSER)  # fmt: skip
        if token := control_token(text, markers):
            return _stray(token, place, text, reply)
    return None


def _stray(token: str, place: str, text: str, reply: Reply) -> Fail:
    if reply.finish_reason == "stop" and text.rstrip().endswith(token):
        return Fail(f"the engine stops at {token} and shows it in the {place}", "engine")
    return Fail(
        f"{token} is in the {place}",
        "configuration",
        f"{DECLARE} {token} as a special token, and as an end-of-sequence token if it ends the turn.",
    )


def _texts(reply: Reply) -> Iterator[tuple[str, str]]:
    yield "content", reply.content
    yield "reasoning", reply.reasoning
    for call in reply.tool_calls:
        yield "call's name", call.name
        yield "call's arguments", call.arguments
