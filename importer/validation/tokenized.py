"""Texts and prompts through the tokenizer beside the weights, without the engine."""

from __future__ import annotations

from unicodedata import normalize

from importer.engines.tokenizer import Redrawn, Tokenized
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.expectations import CommonReason
from importer.validation.prompts import GREETING, Prompt, user
from importer.validation.remedy import Remedy

TEXT = "Say hello to Zo\u00eb, from K\u00f6ln!"
# White space, signs that other signs are compatible with, and letters of four bytes.
KINDS = "one  two\t\tthree\n\n  four: x\u00b2 + \u00bd \ufb01n, Zo\u00eb \U0001f389 \u6771\u4eac"
# Letters stand on both sides of each marker.
LETTERS_BESIDE = Prompt(
    "letters-beside", (user("greetings"), {"role": "assistant", "content": "hello"}, user("thanks"))
)
OWN = Reason(Remedy.OWN_TOKENIZER)


def round_trip(ctx: Context) -> Tokenized | None:
    """Return ``TEXT``, a prompt and ``KINDS`` after tokenization and back; ``None`` where no tokenizer is at
    hand.
    """
    if ctx.tokens is None:
        return None
    beside = ctx.rendered(LETTERS_BESIDE) or TEXT
    result = ctx.tokens((TEXT, ctx.rendered(GREETING) or TEXT, KINDS, beside))
    return result if result is not None and len(result.back) == 4 else None


def tokens_of(ctx: Context, texts: tuple[str, ...]) -> tuple[tuple[int, ...], ...] | None:
    """Return the numbers of the tokens of each text; ``None`` where no tokenizer is at hand."""
    result = ctx.tokens(texts) if ctx.tokens is not None and texts else None
    return result.ids if result is not None and len(result.ids) == len(texts) else None


def redrawn(ctx: Context, drawn: tuple[tuple[int, ...], ...]) -> tuple[Redrawn, ...] | None:
    """Return drawn tokens beside those of their texts; ``None`` where no tokenizer is at hand."""
    result = ctx.tokens((), drawn) if ctx.tokens is not None else None
    return result.drawn if result is not None and len(result.drawn) == len(drawn) else None


def words_of(ctx: Context) -> tuple[tuple[int, str], ...]:
    """Return numbers and texts of words that are one token; none where no tokenizer is at hand."""
    result = round_trip(ctx)
    return () if result is None else result.words


def altered(ctx: Context) -> Reason | None:
    """Return what shows that a tokenizer changes prompts of its model, or ``None``."""
    changed, merges = changed_prompt(ctx), ctx.merges
    if changed is not None:
        return Reason(CommonReason.PROMPT_CHANGED, changed=changed[:80])
    if merges is not None and merges.other_order:
        return Reason(
            CommonReason.OTHER_MERGES, unmade=merges.unmade, sampled=merges.sampled, example=merges.example
        )
    return None


def changed_prompt(ctx: Context) -> str | None:
    """Return a prompt after tokenization and back where that is another text; ``None`` where it is the same.

    Intact tokenizers remove spaces beside special tokens, and add some where tokens are not bytes.
    """
    result, prompt = round_trip(ctx), ctx.rendered(GREETING)
    if result is None or prompt is None:
        return None
    back = result.back[1]
    spaced = result.exact and len(back) > len(prompt)
    cut = not result.steady or result.split
    return back if spaced or cut or letters(back) != letters(prompt) else None


def letters(text: str) -> str:
    """Return the text without its spaces."""
    return "".join(normalize("NFKC", text).split())
