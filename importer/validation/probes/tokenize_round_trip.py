"""Text to tokens and back is the same text."""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

from importer.validation.context import Context
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.promise import Promise
from importer.validation.tokenised import OWN

NAME = "tokenize-round-trip"
LESSON = "A tokenizer beside the weights that is not theirs counts wrongly, and gives back another text."
TEXT = "Say hello, Zoë! 你好 🙂"


def needs(promise: Promise) -> str | None:
    """An engine that has it, and is known to: it is no part of the OpenAI API."""
    return promise.unsure("tokenize")


def run(ctx: Context) -> Outcome:
    """There and back."""
    body = {"model": ctx.model, "prompt": TEXT, "add_special_tokens": False}
    there = ctx.client.post("/tokenize", body, ctx.log)
    tokens = there.get("tokens") if isinstance(there, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return Fail("/tokenize gives no list of tokens", "engine")
    back = ctx.client.post("/detokenize", {"model": ctx.model, "tokens": tokens}, ctx.log)
    return judge(there, back)


def judge(there: dict[str, Any], back: Any) -> Outcome:
    """The tokens of TEXT, and what they were turned back into."""
    tokens, text = there["tokens"], back.get("prompt") if isinstance(back, dict) else None
    if there.get("count", len(tokens)) != len(tokens):
        return Fail(f"/tokenize counts {there['count']} and gives {len(tokens)}", "engine")
    if not isinstance(text, str):
        return Fail("/detokenize gives no text", "engine")
    if normalize("NFKC", text.strip()) != normalize("NFKC", TEXT):  # some put a space in front
        return Fail(f"{TEXT!r} came back as {text[:80]!r}", "configuration", OWN)
    return Pass(f"{len(tokens)} tokens there and back")
