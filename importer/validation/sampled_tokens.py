"""The tokens that a model draws beside those that the tokenizer makes of the same text.

A model draws the tokens that it has learnt. Where the tokenizer cuts or joins their text otherwise, the model
reads other tokens than in its training, and no text shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from importer.engines.tokenizer import Redrawn
from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.expectations import no_tools
from importer.validation.logit_bias import neutral
from importer.validation.prompts import COUNT, GREETING, NAME_RECALL, SUM, WEATHER, Prompt
from importer.validation.reply import Reply
from importer.validation.tokenized import redrawn

PROMPTS = (GREETING, SUM, COUNT, NAME_RECALL)
CALLS = (WEATHER,)  # marks beside words
ANSWER = 48  # tokens
LEAST = 12  # tokens of all answers; fewer have no verdict
MOST_OTHER = 0.1  # of the tokens: whole models draw none, docs/validation.md has the figures


@dataclass(frozen=True, slots=True)
class OtherTokens:
    """Drawn tokens, and ``other`` ones than those of their text; ``example`` is the text of one."""

    tokens: int
    other: int
    example: str = ""

    @property
    def many(self) -> bool:
        """Return whether more tokens are other ones than an intact tokenizer leaves."""
        return self.tokens >= LEAST and self.other > MOST_OTHER * self.tokens


def compared(ctx: Context) -> OtherTokens | None:
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
    choices = (
        choice for data in reply.raw for choice in data.get("choices") or () if isinstance(choice, dict)
    )
    given = next((choice["token_ids"] for choice in choices if choice.get("token_ids")), None)
    if given is None:
        given = [entry.get("id") for entry in reply.logprobs if isinstance(entry, dict)]
    whole = isinstance(given, list) and all(type(number) is int and number >= 0 for number in given)
    return tuple(given) if whole else ()


def _ask(ctx: Context, prompt: Prompt) -> Reply | None:
    """Return the greedy answer to a prompt; ``None`` where it is refused. Penalties draw other tokens."""
    extra = {**prompt.extra, **neutral(ctx), "temperature": 0.0, "max_tokens": ANSWER, **_shows(ctx)}
    try:
        return ctx.first(replace(prompt, name=f"{prompt.name}-drawn", extra=extra))
    except ExchangeError:
        return None


def _shows(ctx: Context) -> dict[str, bool]:
    """Return the field that makes an engine show numbers of drawn tokens; empty where there is none."""
    if ctx.promise.unsure("tokenize") is None:
        return {"return_token_ids": True}
    return {} if ctx.promise.lacks("logprobs") else {"logprobs": True}
