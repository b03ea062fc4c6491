"""Probes of what a request asks of sampling: stop words, values, options and grammars."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from jsonschema import Draft202012Validator

from importer.engines.log_figures import mentions
from importer.reasons import Reason
from importer.validation.context import EXTRA, Context, ask_both_ways, together
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations, chats_with, no_chat
from importer.validation.mutations import QUOTED, AnswerChange, of_text
from importer.validation.outcome import (
    Fail,
    NotApplicable,
    Outcome,
    Stage,
    asks_for,
    differs,
    failing,
    holding,
    needless,
    not_done,
    note,
    quoted,
)
from importer.validation.probe import probe
from importer.validation.progress import listened
from importer.validation.prompts import AGAIN, GREETING, NUMBER, PERSON, PERSON_SCHEMA, Prompt, user
from importer.validation.remedy import WHOLE_ANSWERS, Remedy
from importer.validation.reply import NO_JSON, Reply, loaded
from importer.validation.tokens import (
    Word,
    ask_forced,
    repeats,
    reply_letters,
    request,
    tokens_of,
    vocabulary,
)
from importer.validation.tool_markup import unended

NEVER_ALIKE = "the engine never repeats itself, whatever is sent"
NEUTRAL = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
SHOWN = {"temperature", "top_k", *NEUTRAL}
GREEDY = 4  # answers that must be one
SEEDS = (1, 2, 3)
Forms = Sequence[tuple[str, str]]


def needs_sampling_arrives(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or no value at the start of the engine that it takes."""
    set_at_start = promise.sampling.keys() - promise.client_sampling.keys()
    lacking = promise.lacks("top-k") if "top_k" in promise.sampling else None
    none = None if SHOWN & set_at_start else note("the document sets no value at the start that shows")
    return no_chat(promise) or none or lacking


@probe(
    "sampling-arrives",
    "An engine took its sampling values at the start, dropped some of them, and said nothing.",
    needs=needs_sampling_arrives,
    observes=Stage.SAMPLED,
)
def sampling_arrives(ctx: Context) -> Outcome:
    """Compare greedy answers, or draws by their seeds; write one word over and over."""
    at_start = {k: v for k, v in ctx.promise.sampling.items() if k not in ctx.promise.client_sampling}
    outcomes: dict[str, Outcome] = {}
    if {"temperature", "top_k"} & at_start.keys():
        if _greedy(ctx.promise.sampling):
            outcomes["draw"] = _draw(ctx, ctx.promise.sampling)
        else:
            outcomes["by seed"] = _seeded(ctx, _sent(ctx.promise.sampling))
    for name, neutral in NEUTRAL.items():
        if at_start.get(name, neutral) != neutral:
            outcomes[name] = _penalty(ctx, name, at_start[name])
    if not outcomes:
        return needless("the document sets no value that would show")
    return missing_values(together(outcomes), at_start, ctx.argv)


def missing_values(outcome: Outcome, at_start: Mapping[str, object], argv: Sequence[str]) -> Outcome:
    """Return a fault of the configuration where the command line lacks the value; ``argv`` is that of the
    engine.
    """
    missing = [name for name in at_start if name in SHOWN and not mentions(argv, name)]
    if not argv or not missing or not isinstance(outcome, Fail):
        return outcome
    remedy = Reason(Remedy.START_WITH, names=tuple(missing))
    return failing(outcome, Stage.START, remedy, note(f"it was started without {', '.join(missing)}"))


def _draw(ctx: Context, sampling: Mapping[str, Any]) -> Outcome:
    unsent = _many(ctx, NUMBER, GREEDY)
    if len(set(unsent)) == 1:
        return judge_greedy([unsent])
    sent = [answer for _ in range(2) for answer in _many(ctx, NUMBER, GREEDY, **_sent(sampling))]
    return judge_greedy([unsent, _many(ctx, NUMBER, GREEDY)], sent)


def _greedy(sampling: Mapping[str, object]) -> bool:
    return sampling.get("temperature") == 0 or sampling.get("top_k") == 1


def _seeded(ctx: Context, values: Mapping[str, object]) -> Outcome:
    """Compare draws with the same seeds, with the values of the document in the request and without."""
    requests: list[dict[str, object]] = [{"seed": seed, **sent} for seed in SEEDS for sent in ({}, values)]
    try:
        first, again = (_all(ctx, requests) for _ in range(2))
    except RequestRefused as refused:
        return NotApplicable(refused.reason)
    return judge_seeded(list(zip(first[::2], again[::2], first[1::2], again[1::2], strict=True)))


def _all(ctx: Context, requests: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [_form(ctx.ask(NUMBER, **fields)) for fields in requests]


def _sent(sampling: Mapping[str, object]) -> dict[str, Any]:
    return {k: v for k, v in sampling.items() if k in ("temperature", "top_k", "top_p", "min_p")}


def _many(ctx: Context, prompt: Prompt, times: int, **sent: Any) -> list[tuple[str, str]]:
    """Return answers to parallel requests."""
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(lambda _: _form(ctx.ask(prompt, **sent)), range(times)))


def _form(reply: Reply) -> tuple[str, str]:
    return reply.reasoning.strip(), reply.content.strip()


def send(*names: str) -> Reason:
    """Return the remedy for an engine that ignores values at its start."""
    return Reason(Remedy.SEND_VALUES, names=names)


def judge_greedy(unsent: Sequence[Forms], sent: Forms = ()) -> Outcome:
    """Judge rounds of answers that must all be one; ``sent`` are answers to requests with greedy values.

    In a batch an engine may draw the other of two tokens with nearly the same probability: one difference is
    chance.
    """
    count = sum(map(len, unsent))
    if any(len(set(answers)) == 1 for answers in unsent):
        return holding(f"{len(unsent[-1])} answers alike", count)
    if len(set(sent)) > 1:
        return needless(NEVER_ALIKE)
    different = len({answer for answers in unsent for answer in answers})
    what = f"different answers of {count} with the values of the start"
    remedy = send("temperature")
    return differs(what, different, "one, as where they are sent", Stage.SAMPLED, remedy, trials=count)


def judge_seeded(thrown: Sequence[Forms]) -> Outcome:
    """Judge, for each seed, two answers to requests without values, and two with those of the document."""
    steady = [(unsent, sent) for unsent, again, sent, once in thrown if unsent == again and sent == once]
    if len({sent for _, sent in steady}) < 2:
        return needless("a seed does not decide what the model writes")
    differ = sum(unsent != sent for unsent, sent in steady)
    if 2 * differ > len(steady):
        what, count = f"answers to {len(steady)} seeds once the values are sent", {"trials": len(steady)}
        remedy = send("temperature", "top_p", "top_k")
        return differs(what, f"{differ} others", "the same", Stage.SAMPLED, remedy, agreed=differ, **count)
    alike = len(steady) - differ
    return holding(
        f"{alike} of {len(steady)} seeds give the answer of the document's values", len(steady), alike
    )


def _penalty(ctx: Context, name: str, value: float) -> Outcome:
    """Judge greedy answers without the penalty in the request, with that of the document, with none."""
    ways: tuple[dict[str, Any], ...] = ({}, {name: value}, {name: NEUTRAL[name]})
    unsent, sent, none = (_form(ctx.ask(AGAIN, temperature=0, **extra)) for extra in ways)
    return judge_penalty(unsent, sent, none, name)


def judge_penalty(
    unsent: tuple[str, str], sent: tuple[str, str], none: tuple[str, str], name: str
) -> Outcome:
    """Judge three answers: the first must equal the second where the second differs from the third."""
    if sent == none:
        return needless(f"{name} changes nothing in what the model writes")
    if unsent == sent:
        return holding(f"{name} takes effect without being sent", 3)
    if unsent == none:
        return differs(name, "not heard where it is not sent", None, Stage.SAMPLED, send(name), trials=3)
    return needless(NEVER_ALIKE)


SHORT, SHORTER = 7, 3  # tokens
LONG = 96  # tokens: more than the caps that were met, and than a piece of any odd length has places
CLIENTS = 6
DICE = 16  # words to draw from
REQUEST_OPTIONS_DRAWN, FEWER = 8, 4  # words of a drawn answer; the latter of a slow engine
REQUEST_OPTIONS_SEEDS = (1, 2, 3, 4, 5)
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
NOT_FORCED = "the server heeds no logit_bias, so no answer can be forced"
KEY = "mark"
RENAMED = "max_completion_tokens"  # what OpenAI calls the limit now, and newer clients send alone


@probe(
    "request-options",
    "Gateways dropped seeds, capped or crossed answers and kept streams back; the weights were blamed.",
    needs=chats_with("bias"),
    alone=True,  # it measures time, and tells answers of clients apart
    observes=Stage.SAMPLED,
)
def request_options(ctx: Context) -> Outcome:
    """Force answers of known words, and compare each with its request."""
    words = vocabulary(ctx)
    if len(words) < DICE:
        return NotApplicable(ctx.no_tokenizer)
    reply = ask_forced(ctx, GREETING, words[:1], SHORT)
    if not repeats(reply, words[0]):
        return judge_unforced(ctx, words[0], reply)
    outcomes = {
        "max_tokens": _limits(ctx, words[0], reply),
        "clients": _clients(ctx, words),
        "stream": _streamed(ctx, words[-1]),
        "draw": _draws(ctx, words[:DICE]),
    }
    return together(outcomes)


def ignored(option: str, sent: Any, *, stage: Stage = Stage.SAMPLED) -> Fail:
    """Return the failure of an option without effect."""
    return differs(option, f"no effect of {sent}", None, stage, heed(option))


def crossed(word: Word, reply: Reply, trials: int = 1) -> Fail:
    """Return the failure of an answer that is another client's."""
    what = "an answer that is forced to be one word"
    return differs(what, _shown(reply), quoted(word.letters), Stage.GATEWAY, trials=trials)


def heed(option: str) -> Reason:
    """Return the remedy for an option that has no effect, or another one."""
    return Reason(Remedy.HEED_OPTIONS, option=option)


def judge_unforced(ctx: Context, word: Word, reply: Reply) -> Outcome:
    """Judge an answer that is not the forced word: of an unknown server that says nothing."""
    if ctx.promise.offers is None:
        return needless(NOT_FORCED)
    earlier = ctx.first(GREETING)
    longer = (earlier.usage.completion or 0) > SHORT and reply.finish_reason == earlier.finish_reason
    if longer and reply_letters(reply) == reply_letters(earlier):  # it heeds no limit either
        return crossed(word, reply)
    failure = ignored("logit_bias", word.letters)
    return failure if reply.content or reply.reasoning else needless(NOT_FORCED)


def _limits(ctx: Context, word: Word, longer: Reply) -> Outcome:
    """Judge two answers with different limits; the shorter one with log-probabilities, where offered."""
    shows = ctx.promise.offers is not None and not ctx.promise.lacks("logprobs")
    tops = {"logprobs": True, "top_logprobs": TOPS} if shows else {}
    shorter = ask_forced(ctx, GREETING, [word], SHORTER, **tops)
    counts = ctx.promise.lacks("usage") is None
    for reply, limit in ((longer, SHORT), (shorter, SHORTER)):
        outcome = judge_limit(reply, word, limit, counts=counts)
        if isinstance(outcome, Fail):
            return outcome
    if shows and len(shorter.logprobs) < SHORTER:
        return ignored("logprobs", TOPS)
    if ctx.promise.offers is not None and not ctx.promise.lacks("renamed-limit"):
        renamed = {**request(ctx, [word], SHORTER), "max_tokens": None, RENAMED: SHORTER}
        return judge_limit(ctx.ask(GREETING, **renamed), word, SHORTER, counts=counts, option=RENAMED)
    return holding("max_tokens takes effect")


def judge_limit(reply: Reply, word: Word, limit: int, *, counts: bool, option: str = "max_tokens") -> Outcome:
    """Judge a forced answer beside its limit; ``counts`` if the engine's counts are right."""
    came = repeats(reply, word)
    if came == 0:
        return crossed(word, reply)
    if counts and came == limit and reply.usage.completion is not None:
        came = reply.usage.completion
    if came == limit and reply.finish_reason == "length":
        return holding(f"{option} takes effect")
    what = f"tokens and finish_reason of an answer with the {option} {limit}"
    ends = heed(option) if came != limit else None
    return differs(what, (came, reply.finish_reason), (limit, "length"), Stage.SAMPLED, ends)


def _shown(reply: Reply) -> str:
    return quoted(f"{reply.reasoning}{reply.content}".strip()[:40])


def _streamed(ctx: Context, word: Word) -> Outcome:
    """Judge a long streamed answer, with letters beyond ASCII where the vocabulary has a word with some.

    Then judge when it came; while it comes, light questions show a busy machine.
    """
    room, least = ctx.promise.context, ctx.promise.paced(LONG)
    for trial, longer in enumerate(LONGER, 1):
        long = least * longer if room is None else min(least * longer, room // 4)
        send = partial(ask_forced, ctx, GREETING, [word], long, **EXTRA["streamed"])
        reply, silent = (send(), math.inf) if trial == 1 else listened(ctx.client, send)
        outcome = judge_streamed(reply, word, long, usage=ctx.promise.lacks("usage") is None)
        if isinstance(outcome, Fail):
            capped = asks_for(outcome, Remedy.NO_CAP)
            whole = repeats(ask_forced(ctx, GREETING, [word], long), word) if capped else 0
            return replace(outcome, remedy=WHOLE_ANSWERS) if whole == long else outcome
        exchange = ctx.log[-1]
        seconds, first = exchange.seconds, exchange.seconds if exchange.first is None else exchange.first
        if not at_once(seconds, first):
            break
        if options_kept(seconds, silent):
            what, remedy = f"seconds to the first of {long} streamed tokens", Reason(Remedy.STREAM_AT_ONCE)
            soon = f"much less than the {seconds:.2f} of all"
            return differs(what, round(first, 2), soon, Stage.STREAM, remedy, trials=trial)
    return outcome


def at_once(seconds: float, first: float) -> bool:
    """Return whether all of a stream came together, ``first`` of its ``seconds`` after the request."""
    return seconds >= SLOW and seconds - first <= AT_ONCE * seconds


def options_kept(seconds: float, silent: float) -> bool:
    """Return whether a stream that came together was held back: nobody waited ``silent`` seconds meanwhile.

    On a machine without time everything comes late; one of ``SURE`` seconds is sure without it.
    """
    return seconds >= SURE or silent <= AT_ONCE * seconds


def judge_streamed(reply: Reply, word: Word, limit: int, *, usage: bool) -> Outcome:
    """Judge a long streamed answer; ``usage`` if the engine counts the tokens of streams."""
    came = repeats(reply, word)
    if came == 0:
        over = f"{word.letters!r} over and over"
        return differs(
            "a stream", _shown(reply), over, Stage.STREAM, _of_letters(reply, word.letters * limit)
        )
    if came < limit:
        return differs(
            "tokens of an answer with that max_tokens", came, limit, Stage.WHOLE, Reason(Remedy.NO_CAP)
        )
    if usage and reply.usage.completion is None:
        return ignored("stream_options", "include_usage", stage=Stage.STREAM)
    return holding("stream takes effect")


def _of_letters(reply: Reply, own: str) -> Reason:
    """Return the remedy for a streamed answer that is not ``own``, which it was forced to be."""
    came = reply_letters(reply)
    change = of_text(own, came)
    if change in BY_STREAM:
        return WHOLE_ANSWERS
    if change is None:
        return Reason(
            Remedy.ANSWERS_UNALTERED,
            change=Reason(AnswerChange.WORDS_CHANGED, part="answer", own=own[:QUOTED], came=came[:QUOTED]),
        )
    part = "content" if reply.content.strip() else "reasoning"
    told = Reason(change, part=part, own=own[:QUOTED], came=came[:QUOTED])
    return Reason(Remedy.ANSWERS_UNALTERED, change=told)


def _clients(ctx: Context, words: Sequence[Word]) -> Outcome:
    """Judge answers to several clients at once: each has a word, a length and a prompt of its own, and every
    second one a stream.
    """
    drawn = FEWER if ctx.promise.slow else REQUEST_OPTIONS_DRAWN
    asked = [
        (Prompt(f"client-{n}", (user(" ".join([word.letters] * (n + 1))),)), word, drawn + n)
        for n, word in enumerate(words[:CLIENTS])
    ]
    ways = [EXTRA["streamed" if n % 2 else "whole"] for n in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        replies = list(
            pool.map(lambda one, way: ask_forced(ctx, one[0], [one[1]], one[2], **way), asked, ways)
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
        foreign = reply_letters(reply).replace(word.letters, "")
        theirs = any(other.letters in foreign for other in words if other is not word)
        if not (theirs or repeats(reply, word)):
            return ignored("logit_bias", word.letters)
        if theirs or reply.usage.prompt in others:
            return crossed(word, reply, len(replies))
    return holding("clients takes effect", len(replies))


def _draws(ctx: Context, words: Sequence[Word]) -> Outcome:
    """Judge answers drawn from several words: cold, hot, and hot with one seed."""
    cold = _drawn(ctx, words, REQUEST_OPTIONS_SEEDS, temperature=0)
    hot = _drawn(ctx, words, REQUEST_OPTIONS_SEEDS, temperature=HOT)
    again = _drawn(ctx, words, REQUEST_OPTIONS_SEEDS[:1], temperature=HOT)
    if len({*hot}) == 1:
        hot += _drawn(ctx, words, MORE_SEEDS, temperature=HOT)
    elif again[0] != hot[0]:
        again += _drawn(ctx, words, REQUEST_OPTIONS_SEEDS[:1] * 2, temperature=HOT)
    outcomes: dict[str, Outcome | None] = {"temperature": judge_cold(cold), "hot": judge_hot(hot)}
    if not ctx.promise.lacks("seed"):
        outcomes["seed"] = judge_seed([hot[0], *again])
    return together(outcomes)


def _drawn(ctx: Context, words: Sequence[Word], seeds: Sequence[int], *, temperature: float) -> list[str]:
    count = FEWER if ctx.promise.slow else REQUEST_OPTIONS_DRAWN
    return [
        reply_letters(ask_forced(ctx, GREETING, words, count, temperature=temperature, seed=seed))
        for seed in seeds
    ]


def judge_cold(answers: Sequence[str]) -> Fail | None:
    """Judge answers at temperature 0, that should be one."""
    different = len({*answers})
    return None if different <= STEADY else _drawn_wrong("temperature", 0, different, 1, answers)


def judge_hot(answers: Sequence[str]) -> Fail | None:
    """Judge answers at a high temperature, that should not all be one."""
    different = len({*answers})
    if different > STEADY or (len(answers) == len(REQUEST_OPTIONS_SEEDS) and different > 1):
        return None
    return _drawn_wrong("temperature", HOT, different, "several", answers)


def judge_seed(answers: Sequence[str]) -> Fail | None:
    """Judge answers with one seed; two alike among several are enough, for a cache may round otherwise."""
    different = len({*answers})
    if different < len(answers):
        return None
    return _drawn_wrong("seed", REQUEST_OPTIONS_SEEDS[0], different, 1, answers)


def _drawn_wrong(option: str, sent: float, came: int, expected: object, answers: Sequence[str]) -> Fail:
    what = f"different answers of {len(answers)} with {option} {sent}"
    return differs(what, came, expected, Stage.SAMPLED, heed(option), trials=len(answers))


ENDLESS = 20  # characters of white space at the end: more than any layout of three members has


@probe(
    "structured-output",
    "A schema bound the thoughts, or nothing at all, and a good model wrote the shape by itself.",
    needs=chats_with("structured"),
    ability="structured",
)
def structured_output(ctx: Context) -> Outcome:
    """Judge an answer whose schema has one value that no model writes by itself, whole and streamed."""
    schema = shape(secrets.token_hex(4))
    shaped = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}}
    judge = partial(judge_structured_output, schema=schema)
    return unended(ask_both_ways(ctx, PERSON, judge, response_format=shaped), PERSON, ctx)


def shape(nonce: str) -> dict[str, Any]:
    """Return the schema of a person with one more value."""
    properties: Any = PERSON_SCHEMA["properties"]
    return {
        **PERSON_SCHEMA,
        "properties": {**properties, KEY: {"const": nonce}},
        "required": [*properties, KEY],
    }


def judge_structured_output(reply: Reply, schema: Mapping[str, Any]) -> Outcome:
    """Judge an answer of a schema; a grammar lets a model go on with white space for ever."""
    text = reply.content.strip()
    if reply.finish_reason == "length":
        if text.startswith("{") and len(reply.content) - len(reply.content.rstrip()) >= ENDLESS:
            return holding(f"the schema bound the answer, then white space came: {text[:80]}")
        return not_done("the answer came to the limit of tokens")
    if (value := loaded(text, NO_JSON)) is NO_JSON:
        return differs(
            "content that a schema binds", quoted(text), "JSON", Stage.SAMPLED, heed("response_format")
        )
    error = next(Draft202012Validator(schema).iter_errors(value), None)
    if error is not None:
        what, problem = "content that does not fit its schema", error.message
        return differs(what, problem, None, Stage.SAMPLED, heed("response_format"))
    return holding(f"fits the schema: {text[:80]}")
