"""The probe of what ends an answer: stop strings, limits of tokens, and the context."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from importer.reasons import Reason
from importer.validation import proof_check
from importer.validation.calls import first_call
from importer.validation.context import STEADY, TOKENS, Context, ask_both_ways, in_turn, together
from importer.validation.diagnosis import endless, thought_shown
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations, no_chat, no_reasoning, no_tools
from importer.validation.outcome import (
    Fail,
    NotApplicable,
    Outcome,
    Stage,
    Tried,
    differs,
    holding,
    needless,
    not_done,
    note,
    quoted,
)
from importer.validation.probe import probe
from importer.validation.probes.sampling import heed
from importer.validation.prompts import (
    BOTH_ANSWERED,
    COUNT,
    GREETING,
    SUM,
    SUM_SILENT,
    SUM_THINKING,
    TWO_CITIES,
    WEATHER,
    Prompt,
    user,
)
from importer.validation.remedy import Remedy, end_at
from importer.validation.reply import Reply, holds_object


@probe(
    "answer-ends",
    "Stop strings were shown by half; cut answers, thoughts and calls came as whole ones, or were not cut.",
    needs=no_chat,
)
def answer_ends(ctx: Context) -> Outcome:
    """Judge answers that must end soon: at a stop string, after a few tokens, before a prompt too long.

    The first that does not is the verdict.
    """
    parts = {"stop": _stops, "limit": _token_limits}
    parts |= {} if no_reasoning(ctx.promise) else {"thought": cut_thought}
    parts |= {} if no_tools(ctx.promise) else {"call": cut_call}
    short = ctx.promise.context is not None and ctx.promise.context <= LONGEST
    parts |= {"context": _long_prompt} if short and not ctx.promise.lacks("limit") else {}
    return in_turn({name: partial(part, ctx) for name, part in parts.items()})


COUNT_SILENT = replace(COUNT, name="count-silent", switches=SUM_SILENT.switches)
NEVER = "\u2603\u2603"  # in no answer
WORDS = 4  # an answer of fewer has no middle
TRIES = 32  # places from the second word on; an answer that counts to ten has ten


def _stops(ctx: Context) -> Outcome:
    """Judge answers that no stop word of the document may end, then answers that a request's string must."""
    own = bool(words(ctx.promise) or ctx.promise.stopwords)
    outcomes = {"of the document": _stop_words(ctx)} if own else {}
    lacking = ctx.promise.lacks("stop")
    sent = NotApplicable(lacking) if lacking is not None else _stop_strings(ctx)
    return together({**outcomes, "of a request": sent})


def _stop_strings(ctx: Context) -> Outcome:
    """Stop soon in a known answer: at a word, and across two, where another string stands first.

    Without chance, so that the stopped answer is the known one.
    """

    def known(prompt: Prompt) -> Reply:
        return ctx.first(prompt) if ctx.promise.greedy else ctx.ask(prompt, **STEADY)

    prompt, full = COUNT, known(COUNT)
    places = middle(full)
    if not places and full.reasoning.strip():  # it counts in its thoughts, too
        prompt, full = COUNT_SILENT, known(COUNT_SILENT)
        places = middle(full) or middle(replace(full, reasoning=""))
    if full.finish_reason == "length":
        return endless(full, ctx.promise.markers)
    if not places and ctx.first(GREETING).finish_reason != "length":
        prompt, full = GREETING, known(GREETING)
        places = middle(full)
    if not places:
        return not_done("the answer has no middle to stop in", quoted(full.content.strip()))
    outcomes = {}
    for stop, before in zip(places, ((), (NEVER,)), strict=True):
        judge, sent = partial(judge_stop_strings, full=full, stop=stop), {"stop": [*before, stop], **STEADY}
        outcomes[repr(stop)] = ask_both_ways(ctx, prompt, judge, **sent)
    return together(outcomes)


def middle(full: Reply) -> tuple[str, ...]:
    """Return a word soon after the beginning, and a string across its left border; each occurs once.

    The sooner an answer stops, the less chance has a part in it.
    """
    words = list(re.finditer(r"\w+", full.content))
    text = full.reasoning + full.content
    for left, right in pairwise(words[1 : TRIES + 1]):
        across = full.content[left.end() - 2 : right.start() + 2]
        if len(words) < WORDS or "\n" in across:
            continue
        if text.count(right.group()) == text.count(across) == 1:
            return right.group(), across
    return ()


def judge_stop_strings(reply: Reply, full: Reply, stop: str) -> Outcome:
    """Judge an answer that must end before ``stop``, beside one without a stop string."""
    shown, raw = reply.content.strip(), full.content.partition(stop)[0]
    before = raw.strip()
    if stop in reply.content or shown == full.content.replace(stop, "").strip():
        how = "shown, and more" if stop in reply.content else "cut out, and more"
        return differs("what stands at a stop string", how, "the end", Stage.SAMPLED, heed("stop"))
    if shown == before and reply.finish_reason != "stop":
        return differs("finish_reason at a stop string", reply.finish_reason, "stop", Stage.SAMPLED)
    if shown == before or stopped_at(reply) == stop:
        return holding(f"ends before {stop!r}")
    half = any(shown == (raw + stop[:n]).strip() for n in range(1, len(stop)))
    if half or (shown and before.startswith(shown) and len(before) - len(shown) < len(stop)):
        return differs(
            "the text before a stop string", quoted(shown[-20:]), quoted(before[-20:]), Stage.SAMPLED
        )
    return not_done("the model wrote something else this time", quoted(shown))


def stopped_at(reply: Reply) -> object:
    """Return the stop string that ended the answer, where the engine reports it."""
    choices = reversed([*reply.choices])
    return next((c["stop_reason"] for c in choices if c.get("stop_reason") is not None), None)


QUESTIONS = (GREETING, SUM, COUNT)


def words(promise: Expectations) -> tuple[str, ...]:
    """Return the stop words that clients send."""
    sent: Any = promise.client_sampling.get("stop") or ()
    return (sent,) if isinstance(sent, str) else tuple(map(str, sent))


def _stop_words(ctx: Context) -> Outcome:
    """Judge two calls as the template writes them, then answers without stop words: none may hold one."""
    failure = None if no_tools(ctx.promise) else judge_calls(words_between(ctx), ctx.promise.stopwords)
    if failure is not None or not words(ctx.promise):
        return failure or holding("no stop word within calls")
    shown: Mapping[str, Any] = (
        {} if ctx.promise.lacks("logprobs") else TOKENS
    )  # a parser takes markers out of answers
    return judge_stop_words([ctx.ask(prompt, stop=None, **shown) for prompt in QUESTIONS], words(ctx.promise))


def words_between(ctx: Context) -> str:
    """Return the text of the template between the arguments of two calls in one turn."""
    question, rendered = TWO_CITIES.messages[-1]["content"], ctx.rendered(BOTH_ANSWERED) or ""
    behind = rendered.partition(question)[2]
    first, second = (word.capitalize() for word in TWO_CITIES.expects)
    calls = behind.partition(BOTH_ANSWERED.expects[0])[0].partition(first)[2]
    return calls.rpartition(second)[0]


def judge_calls(text: str, stops: tuple[str, ...]) -> Fail | None:
    """Return the fault where a stop word ends an answer between two calls."""
    word = next((w for w in stops if w and w in text), None)
    if word is None:
        return None
    what, remedy = "a stop word between two calls of one turn", Reason(Remedy.TAKE_OUT_STOPWORD, word=word)
    return differs(what, quoted(word), None, Stage.START, remedy)


def judge_stop_words(replies: Sequence[Reply], stops: tuple[str, ...]) -> Outcome:
    """Judge answers that no stop word has ended."""
    for reply in replies:
        for text in (reply.content, reply.reasoning, reply.written):
            word = next((w for w in stops if w in text), None)
            after = text.partition(word)[2].strip() if word else ""
            if word and after:
                whole = sum(each.finish_reason != "length" for each in replies)
                # Where no answer ends without it, nothing else ends a turn.
                remedy = Reason(Remedy.TAKE_OUT_STOPWORD, word=word) if whole else end_at(word)
                stage, tried = (
                    (Stage.START if whole else Stage.TOKENS),
                    Tried(whole or len(replies), len(replies)),
                )
                what, came = f"the stop word {word!r} within an answer", f"before {quoted(after)}"
                return differs(what, came, None, stage, remedy, trials=len(replies), tried=tried)
    return holding(f"no stop word within {len(replies)} answers", len(replies))


FEW = 5  # tokens


def judge_token_limit(reply: Reply) -> Outcome:
    """Judge an answer longer than ``FEW`` tokens."""
    count, finish = reply.usage.completion, reply.finish_reason
    if count is not None and count > FEW:
        return differs("tokens of an answer", count, FEW, remedy=heed("max_tokens"))
    if finish == "stop" and (count is None or count < FEW):
        return not_done(DONE_BEFORE)
    return _cut(reply)


DONE_BEFORE = "the model was done before the limit"


def _cut(reply: Reply) -> Outcome:
    """Judge the end of an answer that was cut."""
    if reply.finish_reason == "length":
        return holding("cut at the limit of tokens, finish_reason 'length'")
    return differs("finish_reason of a cut answer", reply.finish_reason, "length")


CAPPED = Reason(Remedy.RAISE_LIMITS)


def _token_limits(ctx: Context) -> Outcome:
    """Send no limit for an answer that needs many tokens, then a limit of a few."""
    unlimited = _default_max_tokens(ctx)
    cut = ask_both_ways(ctx, COUNT, judge_token_limit, max_tokens=FEW)
    return together({"no max_tokens": unlimited, "max_tokens": cut})


def _default_max_tokens(ctx: Context) -> Outcome:
    """Repeat without ``max_tokens`` an answer that ends with it; without chance, or it might never end."""
    full, own = ctx.first(COUNT), ctx.promise.sampling.get("max_tokens")
    if full.finish_reason != "length" and not ctx.promise.greedy:
        full = ctx.ask(COUNT, **STEADY)
    reply = full if full.finish_reason == "length" else ctx.ask(COUNT, max_tokens=None, **STEADY)
    return judge_default_max_tokens(reply, full, ctx.promise.limit(COUNT.tokens), own)


def judge_default_max_tokens(reply: Reply, full: Reply, allowed: int, own: int | None = None) -> Outcome:
    """Judge an answer to a request without a limit, beside one with a limit of ``allowed`` tokens.

    ``own``  the limit that the document names.
    """
    any_limit = needless("the answer comes to any limit: see plain-chat")
    if full.finish_reason == "length":
        came = full.usage.completion
        return any_limit if came is None or came >= allowed else _cut_early(came, allowed, CAPPED)
    if reply.finish_reason == "length":
        came = reply.usage.completion or 0
        if own is not None and came < own:  # the document allows more already
            return _cut_early(came, own, Reason(Remedy.START_WITH, names=("max_tokens",)))
        return any_limit if came >= allowed else _cut_early(came, own, Reason(Remedy.RAISE_MAX_TOKENS))
    if not (reply.content.strip() or reply.reasoning.strip()):
        return not_done("the answer is empty")
    return holding(f"ends by itself, finish_reason {reply.finish_reason!r}")


def _cut_early(came: int, allowed: int | None, remedy: Reason) -> Fail:
    return differs(
        "tokens at which an answer is cut", came or "a few", allowed or "more", Stage.START, remedy
    )


WITHIN = 4  # tokens; thoughts are longer
CASE = "thinking-cut"  # of the proof


def cut_thought(ctx: Context) -> Outcome:
    """Cut a few tokens into the thought that begins a whole answer."""
    if (missed := _known_miss(ctx)) is not None:
        return missed
    full = ctx.first(SUM_THINKING)
    if not full.reasoning.strip():
        return needless("the model answers without a thought")
    return ask_both_ways(ctx, SUM_THINKING, partial(judge_reasoning_cut, full=full), max_tokens=WITHIN)


def _known_miss(ctx: Context) -> NotApplicable | None:
    """Return that the parser in use is proved to miss a cut thought, with one that reads it as the remedy."""
    proof, key = ctx.proof, "reasoning_parser"
    if proof is None or not proof_check.same_template(ctx, proof):
        return None
    verdicts, used = proof.verdicts.get(key, ()), proof_check.named(key, ctx, proof)
    why = next((v.failed[CASE] for v in verdicts if v.parser == used and CASE in v.failed), None)
    if why is None:
        return None
    other = next((v.parser for v in verdicts if v.reads and CASE not in v.failed), None)
    remedy = None if other is None else proof_check.change(key, other, ctx, proof, why)
    missed = note(f"{used} is proved to miss a thought that is cut")
    return NotApplicable(missed, remedy=remedy, notes=(why,) if isinstance(why, Reason) else ())


def judge_reasoning_cut(reply: Reply, full: Reply) -> Outcome:
    """Judge an answer that was cut inside its thought; ``full`` is a whole one."""
    content, thought = reply.content.strip(), full.reasoning.strip()
    if (shown := thought_shown("content", content)) is not None:
        return shown
    if content and not reply.reasoning.strip():
        if full.content.strip().startswith(content) and not thought.startswith(content):
            return not_done("the model answers without a thought this time")
        other = Reason(Remedy.ALLOW_OR_OTHER_PARSER)
        return differs("a cut thought", f"in the content: {quoted(content)}", "reasoning alone", remedy=other)
    if content and content == reply.reasoning.strip():
        return differs("a cut thought", f"in the content, too: {quoted(content)}", "reasoning alone")
    return not_done(DONE_BEFORE) if content and reply.finish_reason != "length" else _cut(reply)


TAIL = 5  # tokens before the end of a call that are surely inside it


def cut_call(ctx: Context) -> Outcome:
    """Repeat a request with a few tokens less than its call has."""
    if (lacking := ctx.promise.lacks("cut-calls")) is not None:
        return NotApplicable(lacking)
    call, tokens = first_call(ctx), ctx.first(WEATHER).usage.completion
    if isinstance(call, NotApplicable):
        return call
    if tokens is None or tokens <= TAIL:
        return needless("the engine does not count the tokens of a call")
    return ask_both_ways(ctx, WEATHER, judge_truncated_call, max_tokens=tokens - TAIL)


def judge_truncated_call(reply: Reply) -> Outcome:
    """Judge an answer that was cut inside a call."""
    broken = [call for call in reply.tool_calls if not holds_object(call.arguments)]
    if reply.finish_reason == "length" or not reply.tool_calls:
        return _cut(reply)
    if broken:
        return differs("a cut call that is given out as a whole one", quoted(broken[0].arguments), "JSON")
    return holding("the call was whole before the cut")


LONGEST = 200_000  # tokens: a prompt beyond a longer context takes too long to send and to count


def _long_prompt(ctx: Context) -> Outcome:
    """Send more words than the context has tokens."""
    context = ctx.promise.context or 0
    prompt = Prompt("long-prompt", (user("again " * (context + 64)),))
    try:
        reply = ctx.ask(prompt, max_tokens=1)
    except RequestRefused as refused:
        return ctx.refused(refused, prompt)
    if ctx.promise.remote:
        return needless(f"answered {reply.content[:80]!r}")
    words = f"an answer to {context + 64} words"
    return differs("a prompt beyond the context", words, "refused", Stage.PROMPT, Reason(Remedy.SET_CONTEXT))
