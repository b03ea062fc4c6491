"""The probe of the cache of prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any

from importer.frozen import frozen
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused
from importer.validation.expectations import UNKNOWN_CONTEXT, Expectations, no_chat
from importer.validation.outcome import Fail, Outcome, Stage, differs, holding, needless, note
from importer.validation.probe import probe
from importer.validation.prompts import Message, Prompt, user
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply
from importer.validation.tokens import tokens_of

SHORTEST = 256  # tokens of context; blocks of a cache have up to 128 and more
WORD = "again "
MOST = 2000  # words
SHARE = 0.5  # of the first turn's tokens that the second finds in the cache at least
OTHER = {"temperature": 0.7}
TOGETHER = 3


@frozen
class CacheUse:
    """One answer of the second turn: tokens of the prompt, and those from the cache."""

    when: str
    prompt: int
    cached: int


class HeldError(Exception):
    """A turn that the context holds was refused."""

    def __init__(self, opening: tuple[Message, ...], refused: RequestRefused) -> None:
        super().__init__(refused.reason)
        self.opening, self.refused = opening, refused


def needs_prefix_cache(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or a context too short for two turns."""
    short = promise.context is not None and promise.context < SHORTEST
    return no_chat(promise) or (note("the context is too short to keep much of it") if short else None)


@probe(
    "prefix-cache",
    "A cache that agents never hit, or lost with each sampling value, took 30 s for a first word, not 0.3.",
    needs=needs_prefix_cache,
    alone=True,  # it is a load on the cache of all others
    observes=Stage.SAMPLED,
)
def prefix_cache(ctx: Context) -> Outcome:
    """Judge two turns, then the second again: with other sampling, three at once, and once more alone."""
    if ctx.running().prefix_caching is False:
        return needless("the engine runs without a prefix cache, and the document asks for none")
    try:
        opening, first = _first(ctx, _words(ctx.promise))
    except HeldError as held:
        return judge_refused(held.opening, held.refused)
    cut = judge_whole(str(opening[0]["content"]).count(WORD), first.usage.prompt)
    if cut is not None:
        return cut
    second = _brief(ctx, _second(opening))
    shown = first.usage.cached is not None or second.usage.cached is not None
    known = "cached" in (ctx.promise.offers or ()) and not ctx.promise.remote  # vLLM counts them with a flag
    if first.usage.prompt is None or not (shown or known):
        return needless("the engine counts no cached tokens")
    answers = [("the second turn", second)]
    answers.append(("with other sampling", _brief(ctx, _second(opening), **OTHER)))
    with ThreadPoolExecutor(TOGETHER) as pool:
        prompts = [_second(opening, f"What is {n} plus two?") for n in range(TOGETHER)]
        batch = list(pool.map(lambda prompt: _tried(ctx, prompt), prompts))
    for answer in batch:
        if isinstance(answer, ExchangeError):
            what = f"one of {TOGETHER} answers at once on one prefix"
            return differs(what, answer.reason, "an answer", Stage.SAMPLED, trials=TOGETHER)
        answers.append((f"of {TOGETHER} at once", answer))
    answers.append(("alone after a batch", _brief(ctx, _second(opening))))
    return judge_prefix_cache(first.usage.prompt, [_cache_use(when, reply) for when, reply in answers])


def _words(promise: Expectations) -> int:
    return min(promise.room(MOST), (promise.context or UNKNOWN_CONTEXT) // 2)


def _opening(words: int) -> tuple[Message, ...]:
    """Return a long question that no cache holds yet."""
    return (user(f"{token_hex(4)} {WORD * words}\nSay hello."),)


def _second(opening: Sequence[Message], question: str = "What is two plus two?") -> Prompt:
    answer: Message = {"role": "assistant", "content": "Hello!"}
    return Prompt("second-turn", (*opening, answer, user(question)))


def _brief(ctx: Context, prompt: Prompt, **extra: Any) -> Reply:
    """Return an answer of one token; only its counts and its time are used."""
    return ctx.ask(prompt, max_tokens=1, **extra)


def _tried(ctx: Context, prompt: Prompt) -> Reply | ExchangeError:
    try:
        return _brief(ctx, prompt)
    except ExchangeError as error:
        return error


def _first(ctx: Context, words: int, tries: int = 3) -> tuple[tuple[Message, ...], Reply]:
    """Return the first turn and its reply; halve the words where the engine refuses them.

    A vocabulary may need several tokens for a word, so a long turn may exceed the context.
    """
    opening = _opening(words)
    try:
        return opening, _brief(ctx, Prompt("first-turn", opening))
    except RequestRefused as refused:
        if not refused.lost and _fits(ctx, Prompt("first-turn", opening)):
            raise HeldError(opening, refused) from None
        if tries == 1 or refused.lost:
            raise
        return _first(ctx, words // 2, tries - 1)


def _fits(ctx: Context, prompt: Prompt) -> bool:
    """Return whether the context holds a prompt, by the tokenizer; not where there is none at hand."""
    tokens = tokens_of(ctx, (ctx.rendered(prompt) or "",))
    return tokens is not None and 0 < len(tokens[0]) < (ctx.promise.context or UNKNOWN_CONTEXT)


def judge_refused(opening: tuple[Message, ...], refused: RequestRefused) -> Fail:
    """Return the fault of a refused turn that the context holds: of its size in bytes, or of the rate."""
    if refused.limited or refused.broke:
        return refused.outcome()
    size = len(json.dumps(opening))
    what, remedy = (
        f"a turn of {size} bytes that the context holds",
        Reason(Remedy.RAISE_BODY_LIMIT, size=size),
    )
    return differs(what, refused.reason, "an answer", Stage.SAMPLED, remedy)


def _cache_use(when: str, reply: Reply) -> CacheUse:
    return CacheUse(when, reply.usage.prompt or 0, reply.usage.cached or 0)


def judge_whole(words: int, counted: int | None) -> Fail | None:
    """Return the fault where a prompt has fewer tokens than words."""
    if counted is None or counted >= words:
        return None
    what, least = "prompt_tokens", f"{words} or more, one for each word"
    return differs(what, counted, least, Stage.SAMPLED, Reason(Remedy.SET_CONTEXT))


def judge_prefix_cache(first: int, answers: Sequence[CacheUse]) -> Outcome:
    """Judge the tokens of the first turn's prompt, and the cached ones of the answers to the second."""
    if any(use.prompt < first for use in answers):
        return needless("the second turn's prompt does not hold the first")
    for use in answers:
        most = f"up to {use.prompt}, those of the prompt"
        if use.cached > use.prompt:
            return differs("cached_tokens", use.cached, most, Stage.SAMPLED, within=(use.when,))
        if use.cached < SHARE * first:
            kept = f"most of {first}, the first turn's"
            when = (use.when,)
            return differs("cached_tokens", use.cached, kept, Stage.SAMPLED, trials=len(answers), within=when)
    least = min(use.cached for use in answers)
    return holding(f"{least} tokens and more of {first} found again", len(answers))
