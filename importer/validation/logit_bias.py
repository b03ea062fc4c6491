"""Answers that no model can refuse: ``logit_bias`` leaves it one word, or a few to draw from.

Such an answer belongs to its request alone, is as long as ``max_tokens`` says, and costs a token a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.validation.context import Context
from importer.validation.prompts import Prompt
from importer.validation.reply import Reply
from importer.validation.tokenized import words_of

BIAS = 100  # the most that the API allows; logits of models stay below
# Values without effect, sent where the document has others: the request alone rules its answer.
NEUTRAL: Mapping[str, float] = {
    "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_k": 0, "top_p": 1.0,
    "min_p": 0.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """A word that is one token: its number and its text."""

    number: int
    text: str

    @property
    def letters(self) -> str:
        """Return the word without the space before it."""
        return self.text.strip()


def vocabulary(ctx: Context) -> tuple[Word, ...]:
    """Return words of the model's vocabulary, none the beginning of another.

    Those of ASCII come first, of these the ones with a space: some engines keep letters back until one comes.
    """
    words: list[Word] = []
    for number, text in sorted(words_of(ctx), key=lambda w: (not w[1].isascii(), not w[1].startswith(" "))):
        word = Word(number, text)
        if not any(alike(word.letters, other.letters) for other in words):
            words.append(word)
    return tuple(words)


def alike(one: str, other: str) -> bool:
    """Return whether an answer of one word may be taken for one of the other."""
    return one.startswith(other) or other.startswith(one)


def request(ctx: Context, words: Iterable[Word], tokens: int) -> dict[str, Any]:
    """Return the fields of a request whose answer consists of these words."""
    return {"logit_bias": {str(w.number): BIAS for w in words}, "max_tokens": tokens, **neutral(ctx)}


def neutral(ctx: Context) -> dict[str, float]:
    """Return values without effect for those of the document that bend an answer."""
    return {k: v for k, v in NEUTRAL.items() if k in ctx.promise.sampling}


def ask(ctx: Context, prompt: Prompt, words: Sequence[Word], tokens: int, **more: Any) -> Reply:
    """Return an answer of these words."""
    return ctx.ask(prompt, **request(ctx, words, tokens), **more)


def letters(reply: Reply) -> str:
    """Return the whole answer without spaces."""
    return "".join(f"{reply.reasoning}{reply.content}".split())


def repeats(reply: Reply, word: Word) -> int:
    """Return how often the answer repeats a word; 0 for any other answer."""
    text = letters(reply)
    times = len(text) // len(word.letters)
    return times if text == word.letters * times else 0
