"""The probe of ``/tokenize``: text to tokens and back is the same text."""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.tokens import OWN


class RoundTripReason(ReasonKind):
    """The reasons of ``tokenize-round-trip``."""

    NO_TOKENS = "no-tokens", "/tokenize gives no list of tokens"
    COUNT_DIFFERS = "count-differs", "/tokenize counts {count} and gives {tokens}"
    NO_TEXT = "no-text", "/detokenize gives no text"
    CHANGED = "changed", "{text!r} came back as {back!r}"
    ALIKE = "alike", "{tokens} tokens there and back"


NAME = "tokenize-round-trip"
LESSON = "A tokenizer beside the weights that is not theirs counts wrongly, and gives back another text."
TEXT = "Say hello, Zoë! 你好 🙂"


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no such path, or an unknown server.

    It is no part of the OpenAI API.
    """
    return promise.unsure("tokenize")


def run(ctx: Context) -> Outcome:
    """Tokenize a text and detokenize its tokens."""
    body = {"model": ctx.model, "prompt": TEXT, "add_special_tokens": False}
    tokenized = ctx.client.post("/tokenize", body, ctx.log)
    tokens = tokenized.get("tokens") if isinstance(tokenized, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return Fail(Reason(RoundTripReason.NO_TOKENS), "engine")
    back = ctx.client.post("/detokenize", {"model": ctx.model, "tokens": tokens}, ctx.log)
    return judge(tokenized, back)


def judge(tokenized: dict[str, Any], back: Any) -> Outcome:
    """Judge the tokens of ``TEXT``, and the text of the tokens."""
    tokens, text = tokenized["tokens"], back.get("prompt") if isinstance(back, dict) else None
    if tokenized.get("count", len(tokens)) != len(tokens):
        return Fail(
            Reason(RoundTripReason.COUNT_DIFFERS, count=tokenized["count"], tokens=len(tokens)), "engine"
        )
    if not isinstance(text, str):
        return Fail(Reason(RoundTripReason.NO_TEXT), "engine")
    if normalize("NFKC", text.strip()) != normalize("NFKC", TEXT):  # some put a space in front
        return Fail(Reason(RoundTripReason.CHANGED, text=TEXT, back=text[:80]), "configuration", OWN)
    return Pass(Reason(RoundTripReason.ALIKE, tokens=len(tokens)))
