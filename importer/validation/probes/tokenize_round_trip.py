"""Text to tokens and back is the same text."""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from unicodedata import normalize

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.tokenized import OWN


class RoundTripReason(StrEnum):
    """What ``tokenize-round-trip`` finds."""

    NO_TOKENS = "no-tokens"
    COUNT_DIFFERS = "count-differs"
    NO_TEXT = "no-text"
    CHANGED = "changed"
    ALIKE = "alike"


NAME = "tokenize-round-trip"
LESSON = "A tokenizer beside the weights that is not theirs counts wrongly, and gives back another text."
TEXT = "Say hello, Zoë! 你好 🙂"


def needs(promise: Expectations) -> Reason | None:
    """Return an engine that has it, and is known to: it is no part of the OpenAI API."""
    return promise.unsure("tokenize")


def run(ctx: Context) -> Outcome:
    """There and back."""
    body = {"model": ctx.model, "prompt": TEXT, "add_special_tokens": False}
    there = ctx.client.post("/tokenize", body, ctx.log)
    tokens = there.get("tokens") if isinstance(there, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return Fail(Reason(RoundTripReason.NO_TOKENS), "engine")
    back = ctx.client.post("/detokenize", {"model": ctx.model, "tokens": tokens}, ctx.log)
    return judge(there, back)


def judge(there: dict[str, Any], back: Any) -> Outcome:
    """Return the tokens of TEXT, and what they were turned back into."""
    tokens, text = there["tokens"], back.get("prompt") if isinstance(back, dict) else None
    if there.get("count", len(tokens)) != len(tokens):
        return Fail(Reason(RoundTripReason.COUNT_DIFFERS, count=there["count"], tokens=len(tokens)), "engine")
    if not isinstance(text, str):
        return Fail(Reason(RoundTripReason.NO_TEXT), "engine")
    if normalize("NFKC", text.strip()) != normalize("NFKC", TEXT):  # some put a space in front
        return Fail(Reason(RoundTripReason.CHANGED, text=TEXT, back=text[:80]), "configuration", OWN)
    return Pass(Reason(RoundTripReason.ALIKE, tokens=len(tokens)))
