"""The probe of options: each takes effect, and the answer is whole, one's own, and comes as it is written."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation import tokens as logit_bias
from importer.validation.context import EXTRA, Context, together
from importer.validation.expectations import CommonReason, Expectations, no_chat
from importer.validation.fact import Rung
from importer.validation.mutations import QUOTED, AnswerChange, ends_otherwise, of_text
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.progress import listened
from importer.validation.prompts import GREETING, Prompt, user
from importer.validation.remedy import WHOLE_ANSWERS, Remedy
from importer.validation.reply import Reply
from importer.validation.tokens import Word, tokens_of


class OptionReason(ReasonKind):
    """The reasons of ``request-options``."""

    NOT_FORCED = "not-forced", "the server heeds no logit_bias, so no answer can be forced"
    IGNORED = "ignored", "{option} {sent!r} has no effect"
    OTHER_LENGTH = (
        "other-length",
        "{option} is {asked}, and the answer has {came} tokens and the finish_reason {finish_reason!r}",
    )
    CAPPED = "capped", "{option} is {asked}, and the answer has {came} tokens: something caps answers"
    LETTERS_BROKEN = "letters-broken", "streamed, {asked!r} over and over comes as {came!r}"
    BUFFERED = (
        "buffered",
        "a stream of {tokens} tokens came at once: its first byte after {first:.2f} of {seconds:.2f} s",
    )
    CROSSED = "crossed", "a request for {asked!r} was given the answer {came!r}"
    COLD_DIFFERS = "cold-differs", "{option} {sent}: {different} of {trials} answers differ"
    SEED_DIFFERS = "seed-differs", "{option} {sent}: {different} of {trials} answers differ"
    ALL_ALIKE = "all-alike", "{option} {sent}: all of {trials} answers are one"
    HEEDED = "heeded", "{option} takes effect"


NAME = "request-options"
LESSON = "Gateways dropped seeds, capped or crossed answers and kept streams back; the weights were blamed."
ALONE = True  # it measures time, and tells answers of clients apart
SHORT, SHORTER = 7, 3  # tokens
LONG = 96  # tokens: more than the caps that were met
SOME = 96  # tokens: letters of two bytes, more than a piece of any odd length has places
CLIENTS = 6
DICE = 16  # words to draw from
DRAWN, FEWER = 8, 4  # words of a drawn answer; the latter of a slow engine
SEEDS = (1, 2, 3, 4, 5)
MORE_SEEDS = tuple(range(6, 11))
HOT = 2.0
STEADY = 2  # different answers at temperature 0: a cache may round the first one otherwise
TOPS = 3
SLOW = 0.1  # seconds of a stream; a shorter one has no verdict
AT_ONCE = 0.3  # of these, between the first piece and the last one; the client reads them meanwhile
LONGER = (1, 2, 5, 10, 20)  # times the shortest stream: short ones may come at once
SURE = 3.0  # seconds: no machine is busy for so long
# Changes of an answer that come of its pieces.
BY_STREAM = (
    AnswerChange.BEGUN_AGAIN,
    AnswerChange.PIECES_REPEATED,
    AnswerChange.BEGINNING_LOST,
    AnswerChange.END_LOST,
    AnswerChange.LETTERS_BROKEN,
)
KEY = "answer"
RENAMED = "max_completion_tokens"  # what OpenAI calls the limit now, and newer clients send alone


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine without ``logit_bias``."""
    return no_chat(promise) or promise.lacks("bias")


def run(ctx: Context) -> Outcome:
    """Force answers of known words, and compare each with its request."""
    words = logit_bias.vocabulary(ctx)
    if len(words) < DICE:
        return NotApplicable(ctx.no_tokenizer)
    reply = logit_bias.ask_logit_bias(ctx, GREETING, words[:1], SHORT)
    if not logit_bias.repeats(reply, words[0]):
        return judge_unforced(ctx, words[0], reply)
    outcomes = {
        "max_tokens": _limits(ctx, words[0], reply),
        "clients": _clients(ctx, words),
        "stream": _streamed(ctx, words[0]),
        "letters": _letters(ctx, words[-1]),
        "draw": _draws(ctx, words[:DICE]),
    }
    if ctx.promise.offers is not None and not ctx.promise.lacks("structured"):
        outcomes["response_format"] = _schema(ctx)
    return together(outcomes)


def ignored(option: str, sent: Any, *, rung: Rung = Rung.DRAWN) -> Fail:
    """Return the failure of an option without effect."""
    return Fail(Reason(OptionReason.IGNORED, rung=rung, option=option, sent=sent), "engine", heed(option))


def heed(option: str) -> Reason:
    """Return the remedy for an option that has no effect, or another one."""
    return Reason(Remedy.HEED_OPTIONS, option=option)


def judge_unforced(ctx: Context, word: Word, reply: Reply) -> Outcome:
    """Judge an answer that is not the forced word: of an unknown server that says nothing."""
    if ctx.promise.offers is None:
        return NotApplicable(Reason(OptionReason.NOT_FORCED))
    earlier = ctx.first(GREETING)
    longer = (earlier.usage.completion or 0) > SHORT and reply.finish_reason == earlier.finish_reason
    if longer and logit_bias.letters_logit_bias(reply) == logit_bias.letters_logit_bias(
        earlier
    ):  # it heeds no limit either
        reason = Reason(OptionReason.CROSSED, rung=Rung.GATEWAY, asked=word.letters, came=_shown(reply))
        return Fail(reason, "engine", Reason(Remedy.OWN_ANSWERS))
    failure = ignored("logit_bias", word.letters)
    return failure if reply.content or reply.reasoning else NotApplicable(Reason(OptionReason.NOT_FORCED))


def _limits(ctx: Context, word: Word, longer: Reply) -> Outcome:
    """Judge two answers with different limits; the shorter one with log-probabilities, where offered."""
    shows = ctx.promise.offers is not None and not ctx.promise.lacks("logprobs")
    tops = {"logprobs": True, "top_logprobs": TOPS} if shows else {}
    shorter = logit_bias.ask_logit_bias(ctx, GREETING, [word], SHORTER, **tops)
    counts = ctx.promise.lacks("usage") is None
    for reply, limit in ((longer, SHORT), (shorter, SHORTER)):
        outcome = judge_limit(reply, word, limit, counts=counts)
        if isinstance(outcome, Fail):
            return outcome
    if shows and len(shorter.logprobs) < SHORTER:
        return ignored("logprobs", TOPS)
    if ctx.promise.offers is not None and not ctx.promise.lacks("renamed-limit"):
        renamed = {**logit_bias.request(ctx, [word], SHORTER), "max_tokens": None, RENAMED: SHORTER}
        return judge_limit(ctx.ask(GREETING, **renamed), word, SHORTER, counts=counts, option=RENAMED)
    return Pass(Reason(OptionReason.HEEDED, option="max_tokens"))


def judge_limit(reply: Reply, word: Word, limit: int, *, counts: bool, option: str = "max_tokens") -> Outcome:
    """Judge a forced answer beside its limit; ``counts`` if the engine's counts are right."""
    came = logit_bias.repeats(reply, word)
    if came == 0:
        return Fail(
            Reason(OptionReason.CROSSED, rung=Rung.GATEWAY, asked=word.letters, came=_shown(reply)), "engine",
            Reason(Remedy.OWN_ANSWERS),
        )  # fmt: skip
    if counts and came == limit and reply.usage.completion is not None:
        came = reply.usage.completion
    if came == limit and reply.finish_reason == "length":
        return Pass(Reason(OptionReason.HEEDED, option=option))
    reason = Reason(
        OptionReason.OTHER_LENGTH, rung=Rung.DRAWN, option=option, asked=limit, came=came,
        finish_reason=reply.finish_reason,
    )  # fmt: skip
    return Fail(reason, "engine", heed(option) if came != limit else ends_otherwise("length", reply))


def _shown(reply: Reply) -> str:
    return f"{reply.reasoning}{reply.content}".strip()[:40]


def _streamed(ctx: Context, word: Word) -> Outcome:
    """Judge a long streamed answer, and when it came; while it comes, light questions show a busy machine."""
    room, least = ctx.promise.context, ctx.promise.paced(LONG)
    for trial, longer in enumerate(LONGER, 1):
        long = least * longer if room is None else min(least * longer, room // 4)
        send = partial(logit_bias.ask_logit_bias, ctx, GREETING, [word], long, **EXTRA["streamed"])
        reply, silent = (send(), math.inf) if trial == 1 else listened(ctx.client, send)
        outcome = judge_streamed(reply, word, long, usage=ctx.promise.lacks("usage") is None)
        if isinstance(outcome, Fail):
            capped = outcome.gives(OptionReason.CAPPED)
            whole = (
                logit_bias.repeats(logit_bias.ask_logit_bias(ctx, GREETING, [word], long), word)
                if capped
                else 0
            )
            return replace(outcome, remedy=WHOLE_ANSWERS) if whole == long else outcome
        exchange = ctx.log[-1]
        seconds, first = exchange.seconds, exchange.seconds if exchange.first is None else exchange.first
        if not at_once(seconds, first):
            break
        if kept(seconds, silent):
            reason = Reason(
                OptionReason.BUFFERED, rung=Rung.STREAM, tokens=long, seconds=seconds, first=first
            )
            return Fail(reason, "engine", Reason(Remedy.STREAM_AT_ONCE), trials=trial)
    return outcome


def _letters(ctx: Context, word: Word) -> Outcome:
    """Judge a streamed answer with letters beyond ASCII, where the vocabulary has a word with some."""
    if word.letters.isascii():
        return Pass(Reason(OptionReason.HEEDED, option="stream"))
    some = ctx.promise.paced(SOME)
    return judge_streamed(
        logit_bias.ask_logit_bias(ctx, GREETING, [word], some, stream=True), word, some, usage=False
    )


def at_once(seconds: float, first: float) -> bool:
    """Return whether all of a stream came together, ``first`` of its ``seconds`` after the request."""
    return seconds >= SLOW and seconds - first <= AT_ONCE * seconds


def kept(seconds: float, silent: float) -> bool:
    """Return whether a stream that came together was held back: nobody waited ``silent`` seconds meanwhile.

    On a machine without time everything comes late; one of ``SURE`` seconds is sure without it.
    """
    return seconds >= SURE or silent <= AT_ONCE * seconds


def judge_streamed(reply: Reply, word: Word, limit: int, *, usage: bool) -> Outcome:
    """Judge a long streamed answer; ``usage`` if the engine counts the tokens of streams."""
    came = logit_bias.repeats(reply, word)
    if came == 0:
        reason = Reason(OptionReason.LETTERS_BROKEN, rung=Rung.STREAM, asked=word.letters, came=_shown(reply))
        return Fail(reason, "engine", _of_letters(reply, word.letters * limit))
    if came < limit:
        reason = Reason(OptionReason.CAPPED, rung=Rung.WHOLE, option="max_tokens", asked=limit, came=came)
        return Fail(reason, "engine", Reason(Remedy.NO_CAP))
    if usage and reply.usage.completion is None:
        return ignored("stream_options", "include_usage", rung=Rung.STREAM)
    return Pass(Reason(OptionReason.HEEDED, option="stream"))


def _of_letters(reply: Reply, own: str) -> Reason:
    """Return the remedy for a streamed answer that is not ``own``, which it was forced to be."""
    came = logit_bias.letters_logit_bias(reply)
    change = of_text(own, came)
    if change in BY_STREAM:
        return WHOLE_ANSWERS
    if change is None:
        return Reason(Remedy.OWN_ANSWERS)
    part = "content" if reply.content.strip() else "reasoning"
    told = Reason(change, part=part, own=own[:QUOTED], came=came[:QUOTED])
    return Reason(Remedy.ANSWERS_UNALTERED, change=told)


def _clients(ctx: Context, words: Sequence[Word]) -> Outcome:
    """Judge answers to several clients at once: each has a word, a length and a prompt of its own, and every
    second one a stream.
    """
    drawn = FEWER if ctx.promise.slow else DRAWN
    asked = [
        (Prompt(f"client-{n}", (user(" ".join([word.letters] * (n + 1))),)), word, drawn + n)
        for n, word in enumerate(words[:CLIENTS])
    ]
    ways = [EXTRA["streamed" if n % 2 else "whole"] for n in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        replies = list(
            pool.map(
                lambda one, way: logit_bias.ask_logit_bias(ctx, one[0], [one[1]], one[2], **way), asked, ways
            )
        )
    return judge_clients(replies, [word for _, word, _ in asked], _counts(ctx, [one for one, _, _ in asked]))


def _counts(ctx: Context, prompts: Sequence[Prompt]) -> list[int]:
    """Return the tokens of prompts by the tokenizer; none where the engine counts a greeting otherwise."""
    texts = tuple(ctx.rendered(prompt) or "" for prompt in (GREETING, *prompts))
    tokens = tokens_of(ctx, texts) if all(texts) and not ctx.promise.lacks("usage") else None
    first, *counts = [len(ids) for ids in tokens or ()] or [0]
    return counts if first == ctx.first(GREETING).usage.prompt else []


def judge_clients(replies: Sequence[Reply], words: Sequence[Word], counts: Sequence[int]) -> Outcome:
    """Judge answers to clients, each beside its word; ``counts`` are tokens of prompts, where known."""
    for place, (reply, word) in enumerate(zip(replies, words, strict=True)):
        others = {*counts} - {*counts[place : place + 1]}
        foreign = logit_bias.letters_logit_bias(reply).replace(word.letters, "")
        theirs = any(other.letters in foreign for other in words if other is not word)
        if not (theirs or logit_bias.repeats(reply, word)):
            return ignored("logit_bias", word.letters)
        if theirs or reply.usage.prompt in others:
            reason = Reason(OptionReason.CROSSED, rung=Rung.GATEWAY, asked=word.letters, came=_shown(reply))
            remedy = Reason(Remedy.OWN_STREAMS if len(reply.raw) > 1 else Remedy.OWN_ANSWERS)
            return Fail(reason, "engine", remedy, trials=len(replies))
    return Pass(Reason(OptionReason.HEEDED, option="clients"), trials=len(replies))


def _schema(ctx: Context) -> Outcome:
    """Judge an answer to a schema with one value, that no model writes by itself."""
    nonce = secrets.token_hex(4)
    schema = {
        "type": "object", "properties": {KEY: {"const": nonce}}, "required": [KEY],
        "additionalProperties": False,
    }  # fmt: skip
    shape = {"type": "json_schema", "json_schema": {"name": KEY, "schema": schema, "strict": True}}
    reply = ctx.ask(GREETING, response_format=shape)
    return judge_schema(reply, nonce)


def judge_schema(reply: Reply, nonce: str) -> Outcome:
    """Judge an answer that must be an object with the nonce."""
    try:
        answer = json.loads(reply.content)
    except (ValueError, RecursionError):
        answer = None
    if answer == {KEY: nonce}:
        return Pass(Reason(OptionReason.HEEDED, option="response_format"))
    if reply.finish_reason == "length":
        return NotApplicable(Reason(CommonReason.AT_LIMIT))
    return ignored("response_format", nonce)


def _draws(ctx: Context, words: Sequence[Word]) -> Outcome:
    """Judge answers drawn from several words: cold, hot, and hot with one seed."""
    cold = _drawn(ctx, words, SEEDS, temperature=0)
    hot = _drawn(ctx, words, SEEDS, temperature=HOT)
    again = _drawn(ctx, words, SEEDS[:1], temperature=HOT)
    if len({*hot}) == 1:
        hot += _drawn(ctx, words, MORE_SEEDS, temperature=HOT)
    elif again[0] != hot[0]:
        again += _drawn(ctx, words, SEEDS[:1] * 2, temperature=HOT)
    outcomes = {"temperature": judge_cold(cold), "hot": judge_hot(hot)}
    if not ctx.promise.lacks("seed"):
        outcomes["seed"] = judge_seed([hot[0], *again])
    return together(outcomes)


def _drawn(ctx: Context, words: Sequence[Word], seeds: Sequence[int], *, temperature: float) -> list[str]:
    count = FEWER if ctx.promise.slow else DRAWN
    return [
        logit_bias.letters_logit_bias(
            logit_bias.ask_logit_bias(ctx, GREETING, words, count, temperature=temperature, seed=seed)
        )
        for seed in seeds
    ]


def judge_cold(answers: Sequence[str]) -> Outcome:
    """Judge answers at temperature 0, that should be one."""
    if len({*answers}) <= STEADY:
        return Pass(Reason(OptionReason.HEEDED, option="temperature"), trials=len(answers))
    reason = Reason(
        OptionReason.COLD_DIFFERS, rung=Rung.DRAWN, option="temperature", sent=0, different=len({*answers}),
        trials=len(answers),
    )  # fmt: skip
    return Fail(reason, "engine", heed("temperature"), trials=len(answers))


def judge_hot(answers: Sequence[str]) -> Outcome:
    """Judge answers at a high temperature, that should not all be one."""
    if len({*answers}) > STEADY or (len(answers) == len(SEEDS) and len({*answers}) > 1):
        return Pass(Reason(OptionReason.HEEDED, option="temperature"), trials=len(answers))
    reason = Reason(
        OptionReason.ALL_ALIKE, rung=Rung.DRAWN, option="temperature", sent=HOT, trials=len(answers)
    )
    return Fail(reason, "engine", heed("temperature"), trials=len(answers))


def judge_seed(answers: Sequence[str]) -> Outcome:
    """Judge answers with one seed; two alike among several are enough, for a cache may round otherwise."""
    if len({*answers}) < len(answers):
        return Pass(Reason(OptionReason.HEEDED, option="seed"), trials=len(answers))
    reason = Reason(
        OptionReason.SEED_DIFFERS, rung=Rung.DRAWN, option="seed", sent=SEEDS[0], different=len({*answers}),
        trials=len(answers),
    )  # fmt: skip
    return Fail(reason, "engine", heed("seed"), trials=len(answers))
