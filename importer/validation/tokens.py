"""Tokens: texts through the tokenizer beside the weights, the tokens that a model draws, forced answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unicodedata import normalize

from importer.engines.tokenizer import Redrawn, Tokenized
from importer.frozen import frozen
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import attempt
from importer.validation.expectations import no_tools
from importer.validation.outcome import note
from importer.validation.prompts import COUNT, GREETING, NAME_RECALL, SUM, WEATHER, Prompt, user
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply

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
        return note(f"the tokenizer makes {changed[:80]!r} of the prompt")
    if merges is not None and merges.exchanged:
        return note(f"in the tokenizer {' and '.join(merges.exchanged)} have each other's number")
    if merges is not None and merges.other_order:
        unmade = f"{merges.unmade} of {merges.sampled} words of the vocabulary are more than one token"
        return note(
            f"{unmade}, such as {merges.example!r}: the merges are in another order, or some are gone"
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


BIAS = 100  # the most that the API allows; logits of models stay below
# Values without effect, sent where the document has others: the request alone rules its answer.
NEUTRAL: Mapping[str, float] = {
    "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_k": 0, "top_p": 1.0,
    "min_p": 0.0,
}  # fmt: skip


@frozen
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


def ask_forced(ctx: Context, prompt: Prompt, words: Sequence[Word], tokens: int, **more: Any) -> Reply:
    """Return an answer of these words."""
    return ctx.ask(prompt, **request(ctx, words, tokens), **more)


def reply_letters(reply: Reply) -> str:
    """Return the whole answer without spaces."""
    return "".join(f"{reply.reasoning}{reply.content}".split())


def repeats(reply: Reply, word: Word) -> int:
    """Return how often the answer repeats a word; 0 for any other answer."""
    text = reply_letters(reply)
    times = len(text) // len(word.letters)
    return times if text == word.letters * times else 0


PROMPTS = (GREETING, SUM, COUNT, NAME_RECALL)
CALLS = (WEATHER,)  # marks beside words
ANSWER = 48  # tokens
LEAST = 12  # tokens of all answers; fewer have no verdict
MOST_OTHER = 0.1  # of the tokens: whole models draw none, damaged weights up to 6 %, sorted merges 18 %


@frozen
class OtherTokens:
    """Drawn tokens, and ``other`` ones than those of their text; ``example`` is the text of one."""

    tokens: int
    other: int
    example: str = ""

    @property
    def many(self) -> bool:
        """Return whether more tokens are other ones than an intact tokenizer leaves."""
        return self.tokens >= LEAST and self.other > MOST_OTHER * self.tokens


def compare_sampled(ctx: Context) -> OtherTokens | None:
    """Return the greedy answers' tokens beside those of their texts; ``None`` where the engine shows no
    numbers, or no tokenizer is at hand.
    """
    if ctx.tokens is None or not _shows(ctx):
        return None
    right: list[bool] = []
    numbers: list[tuple[int, ...]] = []
    for prompt in (*PROMPTS, *(CALLS if no_tools(ctx.promise) is None else ())):
        reply = _ask(ctx, prompt)
        shown = () if reply is None else numbers_of(reply)
        if reply is None or not shown:
            return None
        numbers.append(shown[:ANSWER])
        right.append(prompt.answered_by(reply.content))
    found = redrawn(ctx, tuple(numbers))
    return None if found is None else summed(found, right)


def summed(found: Sequence[Redrawn], right: Sequence[bool]) -> OtherTokens:
    """Return the sum of answers. Tokens that the tokenizer joins count in right answers alone, and where most
    are right: noise has them, too, and damaged weights answer some right by chance.
    """
    pairs = list(zip(found, right, strict=True))
    intact = 2 * sum(right) > len(right)
    others = [one.cut + (one.joined if known and intact else 0) for one, known in pairs]
    example = next((one.example for one, other in zip(found, others, strict=True) if other), "")
    return OtherTokens(sum(one.tokens for one in found), sum(others), example)


def numbers_of(reply: Reply) -> tuple[int, ...]:
    """Return the numbers of an answer's tokens: vLLM's ``token_ids``, or those of mlx-lm's
    log-probabilities; none where the engine shows none.
    """
    given = next((choice["token_ids"] for choice in reply.choices if choice.get("token_ids")), None)
    if given is None:
        given = [entry.get("id") for entry in reply.logprobs if isinstance(entry, dict)]
    whole = isinstance(given, list) and all(type(number) is int and number >= 0 for number in given)
    return tuple(given) if whole else ()


def _ask(ctx: Context, prompt: Prompt) -> Reply | None:
    """Return the greedy answer to a prompt; ``None`` where it is refused. Penalties draw other tokens."""
    extra = {**prompt.extra, **neutral(ctx), "temperature": 0.0, "max_tokens": ANSWER, **_shows(ctx)}
    return attempt(partial(ctx.first, replace(prompt, name=f"{prompt.name}-drawn", extra=extra)))


def _shows(ctx: Context) -> dict[str, bool]:
    """Return the field that makes an engine show numbers of drawn tokens; empty where there is none."""
    if ctx.promise.unsure("tokenize") is None:
        return {"return_token_ids": True}
    return {} if ctx.promise.lacks("logprobs") else {"logprobs": True}
