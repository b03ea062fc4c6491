"""Probes of the cache of prompts.

One prompt asked twice, without and with its beginning in a cache: the probabilities must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused
from importer.validation.expectations import UNKNOWN_CONTEXT, Expectations, no_chat
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass, Stage
from importer.validation.probe import probe
from importer.validation.prompts import Message, Prompt, user
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply
from importer.validation.tokens import tokens_of

AGAIN = "again "
WORDS = 160  # more than the blocks of 128 tokens that some caches have
TOKENS = 3  # of each answer
TOPS = 3  # of the tokens at a place
LEAD = 1.0  # nat; rounding turns round no such lead
ROUNDED = 0.5  # nat that rounding may move a probability at least, and as many times as it is seen to
TIMES = 4
MOVED = 2.0  # nat that no rounding moves
AGAIN_MOVED = 0.25  # nat that a cache of all of a prompt may move a probability at least
LEAST = 1e6  # nat below 0: what is less probable is no number
OTHERS = 10  # prompts in between: as many as mlx-lm keeps
Tops = Mapping[str, float]


@frozen
class Change:
    """The first place of two answers, counted from one, whose probabilities are of different prompts."""

    place: int
    cold: Tops
    warm: Tops


class ColdAndWarm:
    """A prompt that no cache holds, asked at once; ``warm`` asks again behind another with its beginning."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        words = min(ctx.promise.room(WORDS), (ctx.promise.context or UNKNOWN_CONTEXT) // 4)
        self._text = f"{token_hex(2)} {AGAIN * words}Say hello."
        self._cold, self._again, self._once_more = (self._asked() for _ in range(3))

    def repeated(self) -> Change | None:
        """Return what is another answer once the same request is sent again, or ``None``.

        The two repetitions find all of the prompt in a cache, so that rounding alone moves them apart.
        """
        rounding = max(AGAIN_MOVED, moved(self._again, self._once_more))
        return changed(self._cold, self._again, noise=rounding)

    def change(self) -> Change | None:
        """Return what a cache has changed, or ``None``."""
        for number in range(OTHERS):
            self._ctx.ask(_prompt(f"{number} {token_hex(2)}"), max_tokens=1)
        self._ctx.ask(_prompt(f"{self._text} Now?"), max_tokens=1)
        return changed(self._cold, self._asked(), noise=moved(self._cold, self._again))

    def _asked(self) -> Reply:
        return self._ctx.ask(
            _prompt(self._text), max_tokens=TOKENS, temperature=0, logprobs=True, top_logprobs=TOPS
        )


def _prompt(text: str) -> Prompt:
    return Prompt("cold-and-warm", (user(text),))


def changed(cold: Reply, warm: Reply, *, noise: float = 0.0) -> Change | None:
    """Return the first place where two answers of the same tokens are not equally probable.

    ``noise``  nat by which rounding moves a probability, as far as it was seen.
    """
    most = min(MOVED, max(ROUNDED, TIMES * noise))
    for place, (one, other) in enumerate(zip(_tops(cold), _tops(warm), strict=False), 1):
        best, *rivals = sorted(one, key=lambda token: -one[token])
        if best != max(other, key=lambda token: other[token]):
            leads = all(one[best] - one[rival] > LEAD for rival in rivals)
            return Change(place, one, other) if leads else None
        if _apart(one, other) > most:
            return Change(place, one, other)
    return None


def moved(one: Reply, other: Reply) -> float:
    """Return by how many nat a token's probability moves at most, as far as both drew the same tokens."""
    furthest = 0.0
    for first, second in zip(_tops(one), _tops(other), strict=False):
        furthest = max(furthest, _apart(first, second))
        if max(first, key=lambda token: first[token]) != max(second, key=lambda token: second[token]):
            break
    return furthest


def _apart(one: Tops, other: Tops) -> float:
    return max((abs(one[token] - other[token]) for token in one.keys() & other.keys()), default=0.0)


def _tops(reply: Reply) -> Sequence[Tops]:
    """Return the likeliest tokens at each place, up to the first place without any."""
    places: list[Tops] = []
    for entry in reply.logprobs:
        listed = entry.get("top_logprobs") if isinstance(entry, Mapping) else None
        found = {str(top.get("token")): _number(top.get("logprob")) for top in _entries(listed)}
        numbers = {token: number for token, number in found.items() if number is not None}
        if not numbers:
            break
        places.append(numbers)
    return places


def _entries(listed: Any) -> Sequence[Mapping[str, object]]:
    return [top for top in listed if isinstance(top, Mapping)] if isinstance(listed, list) else []


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LEAST else None


class PrefixCacheReason(ReasonKind):
    """The reasons of ``prefix-cache``."""

    TOO_SHORT = "too-short", "the context is too short to keep much of it"
    NONE_ASKED_FOR = (
        "none-asked-for",
        "the engine runs without a prefix cache, and the document asks for none",
    )
    FAILED = "failed", "with {count} at once on one prefix: {error}"
    REFUSED = "refused", "a turn of {size} bytes is refused, and the context holds it: {error}"
    CUT_IN_SILENCE = (
        "cut-in-silence",
        "of {words:,} words {tokens:,} tokens reach the prompt: it is cut in silence",
    )
    NOT_HELD = "not-held", "the second turn's prompt does not hold the first: see history"
    MORE_THAN_ALL = "more-than-all", "{cached} of {prompt} tokens are cached"
    NOT_FOUND = "not-found", "{cached} of its {prompt} tokens in the cache, {first} were there before"
    CHANGES = (
        "changes",
        "with its beginning in the cache token {place} of an answer is another: {warm}; without: {cold}",
    )
    REPEATED = (
        "repeated",
        "sent again, the same request has another answer: token {place} is {warm}; before: {cold}",
    )
    FOUND = "found", "{least} tokens and more of {first} found again"
    TIMES = "times", "{warm:.2f} s to the first token instead of {cold:.2f} s"
    TOO_FAST = "too-fast", "the engine counts no cached tokens, and is too fast to tell: {times}"
    SLOW = "slow", "the second turn does not find the first in a cache: {times}"


SHORTEST = 256  # tokens of context; blocks of a cache have up to 128 and more
WORD = "again "
MOST = 2000  # words
SHARE = 0.5  # of the first turn's tokens that the second finds in the cache at least
OTHER = {"temperature": 0.7}
TOGETHER = 3
WORTH = 0.15  # seconds to a first token without a cache; a shorter time has no verdict
FASTER = 0.6  # of that time, at most, with one


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
    return no_chat(promise) or (Reason(PrefixCacheReason.TOO_SHORT) if short else None)


@probe(
    "prefix-cache",
    "A cache that agents never hit, or lost with each sampling value, took 30 s for a first word, not 0.3.",
    needs=needs_prefix_cache,
    alone=True,  # it measures time, and the cache must hold nothing of other probes
    observes=Stage.SAMPLED,
)
def prefix_cache(ctx: Context) -> Outcome:
    """Judge what a cache holds, and whether an answer is the same with it and without."""
    if ctx.running().prefix_caching is False:
        return NotApplicable(Reason(PrefixCacheReason.NONE_ASKED_FOR))
    # Fourteen prompts more take a slow engine too long.
    asked = not ctx.promise.slow and ctx.promise.lacks("logprobs") is None
    twice = ColdAndWarm(ctx) if asked else None
    again = None if twice is None else twice.repeated()
    if again is not None and ColdAndWarm(ctx).repeated() is not None:
        return judge_change(again, PrefixCacheReason.REPEATED)
    outcome = _turns(ctx)
    change = None if twice is None or isinstance(outcome, Fail) else twice.change()
    return outcome if change is None else judge_change(change)


def judge_change(change: Change, kind: PrefixCacheReason = PrefixCacheReason.CHANGES) -> Fail:
    """Return the fault of a cache that changes an answer."""
    cold, warm = _shown(change.cold), _shown(change.warm)
    reason = Reason(kind, place=change.place, cold=cold, warm=warm)
    return Fail(reason, Stage.SAMPLED, Reason(Remedy.SOUND_CACHE))


def _shown(tops: Tops) -> str:
    likeliest = sorted(tops.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{token!r} {number:.2f}" for token, number in likeliest)


def _turns(ctx: Context) -> Outcome:
    """Judge two turns, then the second again: with other sampling, three at once, and once more alone."""
    try:
        opening, first = _first(ctx, _words(ctx.promise))
    except HeldError as held:
        return judge_refused(held.opening, held.refused)
    cut = judge_whole(str(opening[0]["content"]).count(WORD), first.usage.prompt)
    if cut is not None:
        return cut
    counts_cached = first.usage.cached is not None or "cached" in (ctx.promise.offers or ())
    if not counts_cached or first.usage.prompt is None:
        return _by_time(ctx, opening)
    second = _brief(ctx, _second(opening))
    if ctx.promise.remote and first.usage.cached is None is second.usage.cached:
        opening, _ = _first(ctx, _words(ctx.promise))  # vLLM counts them with --enable-prompt-tokens-details
        return _by_time(ctx, opening)
    answers = [("the second turn", second)]
    answers.append(("with other sampling", _brief(ctx, _second(opening), **OTHER)))
    with ThreadPoolExecutor(TOGETHER) as pool:
        prompts = [_second(opening, f"What is {n} plus two?") for n in range(TOGETHER)]
        batch = list(pool.map(lambda prompt: _tried(ctx, prompt), prompts))
    for answer in batch:
        if isinstance(answer, ExchangeError):
            return Fail(
                Reason(PrefixCacheReason.FAILED, count=TOGETHER, error=answer.reason),
                Stage.SAMPLED,
                trials=TOGETHER,
            )
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
    remedy = Reason(Remedy.RAISE_BODY_LIMIT, size=size)
    return Fail(Reason(PrefixCacheReason.REFUSED, size=size, error=refused.reason), Stage.SAMPLED, remedy)


def _cache_use(when: str, reply: Reply) -> CacheUse:
    return CacheUse(when, reply.usage.prompt or 0, reply.usage.cached or 0)


def judge_whole(words: int, counted: int | None) -> Fail | None:
    """Return the fault where a prompt has fewer tokens than words."""
    if counted is None or counted >= words:
        return None
    remedy = Reason(Remedy.SET_CONTEXT)
    return Fail(Reason(PrefixCacheReason.CUT_IN_SILENCE, words=words, tokens=counted), Stage.SAMPLED, remedy)


def judge_prefix_cache(first: int, answers: Sequence[CacheUse]) -> Outcome:
    """Judge the tokens of the first turn's prompt, and the cached ones of the answers to the second."""
    if any(use.prompt < first for use in answers):
        return NotApplicable(Reason(PrefixCacheReason.NOT_HELD))
    for use in answers:
        if use.cached > use.prompt:
            return Fail(
                Reason(PrefixCacheReason.MORE_THAN_ALL, cached=use.cached, prompt=use.prompt),
                Stage.SAMPLED,
                within=(use.when,),
            )
        if use.cached < SHARE * first:
            reason = Reason(PrefixCacheReason.NOT_FOUND, cached=use.cached, prompt=use.prompt, first=first)
            return Fail(reason, Stage.SAMPLED, trials=len(answers), within=(use.when,))
    least = min(use.cached for use in answers)
    return Pass(Reason(PrefixCacheReason.FOUND, least=least, first=first), trials=len(answers))


def _by_time(ctx: Context, opening: tuple[Message, ...]) -> Outcome:
    """Judge by times where no tokens are counted; measure again where the second turn is no faster."""
    times = [(ctx.log[-1].seconds, _timed(ctx, _second(opening)))]
    if times[0][1] > FASTER * times[0][0]:
        again, _ = _first(ctx, _words(ctx.promise))
        times.append((ctx.log[-1].seconds, _timed(ctx, _second(again))))
    return judge_times(min(cold for cold, _ in times), min(warm for _, warm in times))


def _timed(ctx: Context, prompt: Prompt) -> float:
    _brief(ctx, prompt)
    return ctx.log[-1].seconds


def judge_times(cold: float, warm: float) -> Outcome:
    """Judge seconds to one token: of a long new prompt, and of the turn after it."""
    times = Reason(PrefixCacheReason.TIMES, warm=warm, cold=cold)
    if cold < WORTH:
        return NotApplicable(Reason(PrefixCacheReason.TOO_FAST, times=times))
    if warm > FASTER * cold:
        return Fail(Reason(PrefixCacheReason.SLOW, times=times), Stage.SAMPLED, trials=2)
    return Pass(times, trials=2)
