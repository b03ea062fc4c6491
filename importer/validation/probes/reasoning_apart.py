"""Reasoning arrives apart from the answer: some of it, none of it in the content, and the content whole."""

from __future__ import annotations

from importer.validation.blame import OTHER_REASONING_PARSER, streaming_fault, unread
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.probes.reasoning_off import silent, turned_round
from importer.validation.promise import no_chat, no_reasoning
from importer.validation.prompts import SUM, SUM_THINKING
from importer.validation.reply import Reply
from importer.validation.signs import thinking_markup, thinks

NAME = "reasoning-apart"
LESSON = (
    "Models whose template opens the block themselves leaked it; models that never think lost their answer."
)
# What the API's messages have, and the two names under which clients look for thoughts.
FIELDS = {
    "role", "content", "refusal", "tool_calls", "function_call", "audio", "annotations", "name",
    "reasoning", "reasoning_content",
}  # fmt: skip
KNOWN_FIELDS = "Use another version of the engine: clients read thoughts as reasoning or reasoning_content."
needs = no_chat


def run(ctx: Context) -> Outcome:
    """Whole, then streamed: each path splits on its own. Where no parser is named, none must be missing."""
    none = no_reasoning(ctx.promise)
    if none is not None:
        return _none_missing(ctx, none)
    whole = ctx.judged(SUM, judge)
    if isinstance(whole, Inconclusive):  # some think only when told to
        turned = turned_round(ctx)
        if turned is not None:
            return turned
        told = ctx.judged(SUM_THINKING, judge)
        unheard = ctx.promise.lacks("switches")
        if isinstance(told, Inconclusive) and unheard is not None and silent(ctx):
            return NotApplicable(f"the document switches thinking off; {unheard}")
        return whole if isinstance(told, Inconclusive) else told
    if not isinstance(whole, Pass):
        return whole
    streamed = ctx.judged(SUM, judge, stream=True)
    if isinstance(streamed, Fail):
        reason = f"streamed: {streamed.reason}; the whole answer is right"
        return streaming_fault(ctx, SUM, reason, streamed.trials)
    return streamed


def _none_missing(ctx: Context, none: str) -> Outcome:
    seen = ctx.look(SUM)
    if seen is not None and unread(seen, SUM) is not None:
        return Fail(
            "the model thinks, and its thoughts are in the content", "configuration", OTHER_REASONING_PARSER
        )
    return NotApplicable(none)


def unknown_field(reply: Reply) -> str | None:
    """A field of the message, or of its pieces, that holds words and that no client knows."""
    texts: dict[str, str] = {}
    for data in reply.raw:
        for choice in data.get("choices") or ():
            part = choice.get("message") or choice.get("delta") or {}
            for key in part.keys() - FIELDS:
                texts[key] = texts.get(key, "") + (part[key] if isinstance(part[key], str) else "")
    return next((key for key, text in texts.items() if len(text.split()) > 1), None)


def judge(reply: Reply) -> Outcome:
    """An answer to a question worth a thought."""
    for place, text in (("content", reply.content), ("reasoning", reply.reasoning)):
        marker = thinking_markup(text)
        if marker is not None:
            return Fail(
                f"the thinking marker {marker} is in the {place}", "configuration", OTHER_REASONING_PARSER
            )
    if not reply.reasoning.strip():
        if (field := unknown_field(reply)) is not None:
            return Fail(
                f"no thought arrives as reasoning, and {field!r} holds a text", "engine", KNOWN_FIELDS
            )
        if thinks(reply.written):
            return Fail(
                "the model thinks, and no thought arrives as reasoning",
                "configuration",
                OTHER_REASONING_PARSER,
            )
        return Inconclusive("the model answered without a thought", "model")
    if not reply.content.strip():
        if reply.finish_reason == "length":
            return Inconclusive(
                "the model was still thinking at the limit of tokens", "model", "Allow more tokens."
            )
        return Fail(
            "the answer is inside the reasoning, content is empty", "configuration", OTHER_REASONING_PARSER
        )
    if reply.content.strip() == reply.reasoning.strip():
        return Fail(
            "the answer is given twice, as reasoning and as content", "configuration", OTHER_REASONING_PARSER
        )
    return Pass(f"thought {reply.reasoning.strip()[:60]!r}, answered {reply.content.strip()[:60]!r}")
