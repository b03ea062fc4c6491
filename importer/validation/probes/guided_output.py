"""The probe of guides: a choice, a regular expression and a grammar bind the answer, and only the answer."""

from __future__ import annotations

import re

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context, together
from importer.validation.expectations import CommonReason, Expectations, no_chat
from importer.validation.outcome import Fail, Inconclusive, Outcome, Pass
from importer.validation.prompts import SUM
from importer.validation.remedy import ALLOW_TOKENS
from importer.validation.reply import Reply


class GuidedReason(ReasonKind):
    """The reasons of ``guided-output``."""

    OTHER = "other", "the answer is not what was asked for: {text!r}"
    BOUND = "bound", "{text}"


NAME = "guided-output"
LESSON = "The request's field had been renamed between two versions; the old one was ignored without a word."
# No model answers a sum so by itself.
GUIDES: dict[str, tuple[object, str]] = {
    "choice": (["blue", "green"], "blue|green"),
    "regex": ("[a-c]{3}", "[a-c]{3}"),
    "grammar": ('root ::= "alpha" | "beta"', "alpha|beta"),
}


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or no guides. They are no part of the OpenAI API."""
    return no_chat(promise) or promise.unsure("guided")


def run(ctx: Context) -> Outcome:
    """Judge one answer for each guide."""
    return together(
        {
            name: judge(ctx.ask(SUM, structured_outputs={name: guide}), pattern)
            for name, (guide, pattern) in GUIDES.items()
        }
    )


def judge(reply: Reply, pattern: str) -> Outcome:
    """Judge an answer that must match ``pattern``."""
    text = reply.content.strip()
    if re.fullmatch(pattern, text):
        return Pass(Reason(GuidedReason.BOUND, text=text))
    if reply.finish_reason == "length":
        return Inconclusive(Reason(CommonReason.AT_LIMIT), "model", ALLOW_TOKENS)
    return Fail(Reason(GuidedReason.OTHER, text=text[:80]), "engine")
