"""Whose fault it is when what was served differs from what the model wrote."""

from __future__ import annotations

from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive
from importer.validation.prompts import WEATHER, WEATHER_TWO_TOOLS, Prompt
from importer.validation.reply import Reply
from importer.validation.signs import control_token, looks_like_call, next_turn, thinks


def swallowed(reply: Reply) -> bool:
    """Whether the engine counts more tokens than an empty answer's end and shows none of them."""
    empty = not (reply.content.strip() or reply.reasoning.strip() or reply.tool_calls)
    return empty and (reply.usage.completion or 0) > 4


def endless(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | Inconclusive:
    """Why an answer went on to the limit: an end that the engine does not know, or a long-winded model."""
    text = reply.reasoning + reply.content + reply.written
    token = control_token(text, markers)
    if token is not None:
        return Fail(
            f"the answer does not end: the model writes {token} and the engine goes on",
            "configuration",
            f"Make {token} an end-of-sequence token in generation_config.json.",
        )
    if next_turn(text):
        return Fail("the answer does not end: it goes on into another turn", "configuration")
    where = "writing" if reply.content.strip() else "thinking"
    return Inconclusive(f"the model was still {where} at the limit of tokens", "model", "Allow more tokens.")


def unread(reply: Reply, prompt: Prompt) -> str | None:
    """What the model wrote that no parser took; ``None`` where nothing was, or its tokens are not shown."""
    if looks_like_call(reply.written, prompt.tools) and not reply.tool_calls:
        return "the model wrote a call that no parser took"
    if thinks(reply.written) and not reply.reasoning.strip():
        return "the model thinks and no parser takes the thoughts"
    return None


def tools_unseen(ctx: Context) -> Fail | None:
    """The fault where a prompt is no longer with two tools than with one; ``None`` if nothing is counted."""
    if not same_length(ctx.first(WEATHER), ctx.first(WEATHER_TWO_TOOLS)):
        return None
    return Fail(
        "the tools do not reach the prompt: a second one makes it no longer",
        "configuration",
        "Use a chat template that renders tools.",
        trials=2,
    )


def same_length(one: Reply, other: Reply) -> bool:
    """Whether the engine counts as many prompt tokens for both."""
    return one.usage.prompt is not None and one.usage.prompt == other.usage.prompt


def streaming_fault(ctx: Context, prompt: Prompt, reason: str, trials: int) -> Fail:
    """Only streaming went wrong: the engine's fault, unless its parsers were never the right ones."""
    seen = ctx.look(prompt)
    wrong = unread(seen, prompt) if seen is not None else None
    if wrong is not None:
        mend = "Choose the parsers that read this model."
        return Fail(f"{reason}; {wrong}", "configuration", mend, trials)
    return Fail(reason, "engine", "Use whole answers until the engine is mended.", trials)
