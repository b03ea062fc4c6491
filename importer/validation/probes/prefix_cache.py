"""The second turn finds the first in the engine's cache, also with other sampling and in a batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from secrets import token_hex
from typing import Any

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused
from importer.validation.expectations import UNKNOWN_CONTEXT, Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.prompts import Message, Prompt, user
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply


class PrefixCacheReason(StrEnum):
    """What ``prefix-cache`` finds."""

    TOO_SHORT = "too-short"
    NONE_ASKED_FOR = "none-asked-for"
    FAILED = "failed"
    CUT_IN_SILENCE = "cut-in-silence"
    NOT_HELD = "not-held"
    MORE_THAN_ALL = "more-than-all"
    NOT_FOUND = "not-found"
    FOUND = "found"
    TIMES = "times"
    TOO_FAST = "too-fast"
    SLOW = "slow"


NAME = "prefix-cache"
LESSON = (
    "A cache that agents never hit, or lost with each sampling value, took 30 s for a first word, not 0.3."
)
ALONE = True  # it takes times, and what others leave in the cache would be in the way
SHORTEST = 256  # tokens of context; blocks of a cache have up to 128 and more
WORD = "again "
MOST = 2000  # words
SHARE = 0.5  # of the first turn's tokens that the second finds in the cache at least
OTHER = {"temperature": 0.7}
TOGETHER = 3
WORTH = 0.15  # seconds to a first token without a cache; what takes less tells nothing
FASTER = 0.6  # of that time, at most, with one


@dataclass(frozen=True, slots=True)
class CacheUse:
    """One answer of the second turn: tokens of the prompt, and those that were in the cache."""

    when: str
    prompt: int
    cached: int


def needs(promise: Expectations) -> Reason | None:
    """Return a chat that has room for two turns."""
    short = promise.context is not None and promise.context < SHORTEST
    return no_chat(promise) or (Reason(PrefixCacheReason.TOO_SHORT) if short else None)


def run(ctx: Context) -> Outcome:
    """Return two turns, then the second again: with other sampling, three at once, and once more alone."""
    if ctx.running().prefix_caching is False:
        return NotApplicable(Reason(PrefixCacheReason.NONE_ASKED_FOR))
    opening, first = _first(ctx, _words(ctx.promise))
    cut = judge_whole(str(opening[0]["content"]).count(WORD), first.usage.prompt)
    if cut is not None:
        return cut
    tells = first.usage.cached is not None or "cached" in (ctx.promise.offers or ())
    if not tells or first.usage.prompt is None:
        return _by_time(ctx, opening)
    answers = [("the second turn", _brief(ctx, _second(opening)))]
    answers.append(("with other sampling", _brief(ctx, _second(opening), **OTHER)))
    with ThreadPoolExecutor(TOGETHER) as pool:
        asked = [_second(opening, f"What is {n} plus two?") for n in range(TOGETHER)]
        batch = list(pool.map(lambda prompt: _tried(ctx, prompt), asked))
    for answer in batch:
        if isinstance(answer, ExchangeError):
            return Fail(
                Reason(PrefixCacheReason.FAILED, count=TOGETHER, error=answer.reason),
                "engine",
                trials=TOGETHER,
            )
        answers.append((f"of {TOGETHER} at once", answer))
    answers.append(("alone after a batch", _brief(ctx, _second(opening))))
    return judge(first.usage.prompt, [_found(when, reply) for when, reply in answers])


def _words(promise: Expectations) -> int:
    return min(MOST, (promise.context or UNKNOWN_CONTEXT) // 2)


def _opening(words: int) -> tuple[Message, ...]:
    """Return a long question that nobody has asked before."""
    return (user(f"{token_hex(4)} {WORD * words}\nSay hello."),)


def _second(opening: Sequence[Message], question: str = "What is two plus two?") -> Prompt:
    told = {"role": "assistant", "content": "Hello!"}
    return Prompt("second-turn", (*opening, told, user(question)))


def _brief(ctx: Context, prompt: Prompt, **extra: Any) -> Reply:
    """Return the answer does not matter."""
    return ctx.ask(prompt, max_tokens=1, **extra)


def _tried(ctx: Context, prompt: Prompt) -> Reply | ExchangeError:
    try:
        return _brief(ctx, prompt)
    except ExchangeError as error:
        return error


def _first(ctx: Context, words: int, tries: int = 3) -> tuple[tuple[Message, ...], Reply]:
    """Return the first turn; a vocabulary may need several tokens for a word, so a long one may be
    refused.
    """
    opening = _opening(words)
    try:
        return opening, _brief(ctx, Prompt("first-turn", opening))
    except RequestRefused:
        if tries == 1:
            raise
        return _first(ctx, words // 2, tries - 1)


def _found(when: str, reply: Reply) -> CacheUse:
    return CacheUse(when, reply.usage.prompt or 0, reply.usage.cached or 0)


def judge_whole(words: int, counted: int | None) -> Fail | None:
    """Return the fault where a prompt of so many words has fewer tokens."""
    if counted is None or counted >= words:
        return None
    remedy = Reason(Remedy.SAME_CONTEXT)
    return Fail(Reason(PrefixCacheReason.CUT_IN_SILENCE, words=words, tokens=counted), "engine", remedy)


def judge(first: int, answers: Sequence[CacheUse]) -> Outcome:
    """Return tokens of the first turn's prompt, and what the answers to the second found."""
    if any(found.prompt < first for found in answers):
        return NotApplicable(Reason(PrefixCacheReason.NOT_HELD))
    for found in answers:
        if found.cached > found.prompt:
            return Fail(
                Reason(PrefixCacheReason.MORE_THAN_ALL, cached=found.cached, prompt=found.prompt),
                "engine",
                within=(found.when,),
            )
        if found.cached < SHARE * first:
            told = Reason(PrefixCacheReason.NOT_FOUND, cached=found.cached, prompt=found.prompt, first=first)
            return Fail(told, "engine", trials=len(answers), within=(found.when,))
    least = min(found.cached for found in answers)
    return Pass(Reason(PrefixCacheReason.FOUND, least=least, first=first), trials=len(answers))


def _by_time(ctx: Context, opening: tuple[Message, ...]) -> Outcome:
    """Return where nothing is counted: the time of each turn to its one token; again where it is no
    faster.
    """
    times = [(ctx.log[-1].seconds, _timed(ctx, _second(opening)))]
    if times[0][1] > FASTER * times[0][0]:
        again, _ = _first(ctx, _words(ctx.promise))
        times.append((ctx.log[-1].seconds, _timed(ctx, _second(again))))
    return judge_times(min(cold for cold, _ in times), min(warm for _, warm in times))


def _timed(ctx: Context, prompt: Prompt) -> float:
    _brief(ctx, prompt)
    return ctx.log[-1].seconds


def judge_times(cold: float, warm: float) -> Outcome:
    """Return seconds to one token: of a long prompt that is new, and of the turn after it."""
    told = Reason(PrefixCacheReason.TIMES, warm=warm, cold=cold)
    if cold < WORTH:
        return NotApplicable(Reason(PrefixCacheReason.TOO_FAST, times=told))
    if warm > FASTER * cold:
        return Fail(Reason(PrefixCacheReason.SLOW, times=told), "engine", trials=2)
    return Pass(told, trials=2)
