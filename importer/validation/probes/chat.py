"""Probes of the conversation: answers, streams, lengths, system turns and history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from importer.hub.snapshot import listed
from importer.proof.verdicts import canonical_arguments
from importer.reasons import Reason
from importer.validation import proof_check, turn_forms
from importer.validation.context import STEADY, Context, ask_both_ways, holds, together
from importer.validation.diagnosis import (
    STREAMED,
    all_thought,
    endless,
    only_streamed,
    streaming_fault,
    swallowed,
    swallowing,
    thought_shown,
)
from importer.validation.expectations import CommonReason, Expectations, no_chat, no_tools
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    Outcome,
    Pass,
    SeenReason,
    Stage,
    asks_for,
    differs,
    failing,
    holding,
    named,
    needless,
    not_done,
    note,
    quoted,
)
from importer.validation.probe import probe
from importer.validation.probes.prompt import ALIKE, beginnings, tokenizer_whole
from importer.validation.prompts import (
    COUNT,
    GREETING,
    GREETING_WITH_TOOL,
    NAME_RECALL,
    SUM,
    TALK,
    WEATHER,
    WEATHER_ANSWERED,
    Prompt,
)
from importer.validation.remedy import NO_REASONING_PARSER, OTHER_TOOL_PARSER, WHOLE_ANSWERS, Remedy
from importer.validation.reply import Reply, other_bytes
from importer.validation.tokens import OWN, altered
from importer.validation.tool_markup import call_markup, control_token, drafted, undecoded

Judge = Callable[[Reply, tuple[str, ...]], Outcome]


@probe(
    "plain-chat",
    "A wrong reasoning parser leaves content null, a missing end-of-turn token talks on: both with HTTP 200.",
    needs=no_chat,
)
def plain_chat(ctx: Context) -> Outcome:
    """Judge the answer to a greeting."""
    outcome = answered(ctx, GREETING)
    if outcome.gives(CommonReason.STILL_WRITING):
        return failing(outcome, Stage.DRAWN, Reason(Remedy.ENDING_WEIGHTS))
    if isinstance(outcome, Pass) and not ctx.first(GREETING).has_role:
        return differs("the role of an answer", None, "assistant")
    return outcome


def answered(ctx: Context, prompt: Prompt, judge_one: Judge | None = None) -> Outcome:
    """Return the judgement of the answers to a greeting; ``judge_one`` is ``judge`` unless given."""
    judge_reply = judge_one or judge_plain_chat
    outcome = ctx.judged(prompt, lambda reply: judge_reply(reply, ctx.promise.markers))
    seen = ctx.look(prompt) if isinstance(outcome, Fail) else None
    return judge_lost(outcome, seen) if isinstance(outcome, Fail) and seen is not None else outcome


def judge_lost(failure: Fail, seen: Reply) -> Outcome:
    """Judge a failure beside the text of the model: half a call is lost, and attributed to the model."""
    if seen.finish_reason == "tool_calls" and not seen.tool_calls and call_markup(seen.written):
        return not_done("the model begins a call to say hello", trials=failure.trials)
    return failure


def judge_plain_chat(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting."""
    if reply.finish_reason == "length":
        return endless(reply, markers)
    if reply.tool_calls:
        return differs("calls where no tool was offered", len(reply.tool_calls), 0)
    if reply.finish_reason != "stop":
        return differs("finish_reason", reply.finish_reason, "stop")
    if reply.content.strip():
        return holding(f"answered {reply.content.strip()[:80]!r}")
    if reply.reasoning.strip():
        return replace(all_thought(""), remedy=NO_REASONING_PARSER)
    if swallowed(reply):
        return swallowing(reply)
    return replace(not_done("the model ended its turn without a word"), stage=None)


QUESTIONS = (SUM, COUNT, NAME_RECALL)
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@probe(
    "simple-answers",
    "Values of another model, a foreign tokenizer, weights that were rounded away: fluent start, then noise.",
    needs=no_chat,
    observes=Stage.DRAWN,
)
def simple_answers(ctx: Context) -> Outcome:
    """Judge the answers to three questions; where most are wrong, check template and tokenizer."""
    answers = {prompt.name: ctx.first(prompt) for prompt in QUESTIONS}
    missed, trials = _missed(answers), len(QUESTIONS)
    if 2 * len(missed) > len(QUESTIONS) and not ctx.promise.hot:  # a small model misses some by chance
        steady = {prompt.name: _steadily(ctx, prompt, answers[prompt.name]) for prompt in missed}
        answers, trials = answers | steady, trials + len(missed)
        missed = _missed(answers)
    gap = left_out_simple_answers(answers[COUNT.name])
    if 2 * len(missed) <= len(QUESTIONS) and gap is None:
        right = len(QUESTIONS) - len(missed)
        signs = token_signs(ctx.promise)
        clean = [p for p in QUESTIONS if p not in missed and leak(answers[p.name], signs) is None]
        agreed = None if len(clean) == len(QUESTIONS) else len(clean)
        return holding(f"{right} of {len(QUESTIONS)} are right", trials, agreed)
    if any(_right_before_token(answers[prompt.name], prompt) for prompt in QUESTIONS):
        cut = [reply for reply in answers.values() if reply.finish_reason == "length"]
        cut_failure = endless(cut[0], ctx.promise.markers) if cut else None
        if isinstance(cut_failure, Fail):
            return cut_failure
    failure = judge_missed(len(missed), len(QUESTIONS), gap)
    noise = len(missed) == len(QUESTIONS)
    return (
        template_fault(failure, ctx)
        or form_fault(failure, ctx, noise=noise)
        or tokenizer_fault(failure, ctx)
        or options_fault(failure, ctx, answers)
        or of_weights(failure, ctx, certain=noise or gap is not None)
    )


def of_weights(failure: Fail, ctx: Context, *, certain: bool) -> Outcome:
    """Return the failure of weights that answer wrong by themselves, too; what a small model misses is none.

    Where they cannot be asked by themselves, or answer right there, nothing shows damage.
    """
    if failure.attribution != "model" or ctx.promise.hot:
        return failure
    if not certain:
        return Inconclusive(failure.reason, Stage.DRAWN, trials=failure.trials)
    asked = ctx.render is not None and ctx.promise.lacks("completions") is None
    damaged = asked and not turn_forms.right_by_itself(ctx, QUESTIONS)
    return failure if damaged else Inconclusive(failure.reason, None, trials=failure.trials)


def _steadily(ctx: Context, prompt: Prompt, reply: Reply) -> Reply:
    """Return a steady answer; with its whole room where a slow engine's shorter one has cut the first."""
    if not ctx.promise.slow or reply.finish_reason != "length":
        return ctx.ask(prompt, **STEADY)
    return ctx.ask(prompt, max_tokens=replace(ctx.promise, plain=None).limit(prompt.tokens), **STEADY)


def _missed(answers: Mapping[str, Reply]) -> list[Prompt]:
    return [prompt for prompt in QUESTIONS if not prompt.answered_by(answers[prompt.name].content)]


def _right_before_token(reply: Reply, prompt: Prompt) -> bool:
    """Return whether a right answer is gone on with behind a control token; noise may hold any token."""
    text = (reply.written or reply.content).casefold()
    token = control_token(text)
    return token is not None and prompt.answered_by(text.partition(token)[0])


def template_fault(failure: Fail, ctx: Context) -> Fail | None:
    """Return the failure as a fault of the template, where that is not the one of the import."""
    if ctx.render is None:
        return None
    if ctx.without_template:
        why, remedy = Reason(CommonReason.NO_TEMPLATE), Reason(Remedy.FETCH_TEMPLATE)
    elif not proof_check.of_import(ctx):
        why, remedy = Reason(CommonReason.NOT_PROVED), Reason(Remedy.IMPORT_AGAIN)
    elif (broken := unbroken(ctx)) is not None:
        why, remedy = broken, ALIKE
    else:
        return None
    return failing(failure, Stage.TEMPLATE, remedy, why)


def form_fault(failure: Fail, ctx: Context, *, noise: bool) -> Fail | None:
    """Return the failure as a fault of the template, where the weights answer to turns of a known form."""
    several = ctx.render is not None and ctx.render.others  # the engine may read another template
    form = None if several else turn_forms.answering(ctx, QUESTIONS, noise=noise)
    if form is None:
        return None
    turns = turn_forms.text_of(form, SUM)
    remedy = Reason(Remedy.WRITE_TURNS, form=form.name, turns=turns)
    return failing(failure, Stage.TEMPLATE, remedy, note(f"in turns of {form.name} all of them are right"))


def unbroken(ctx: Context) -> Reason | None:
    """Return the line break that earlier answers begin with, and a new one does not.

    Some models write that break themselves, so it is no fault where answers are right.
    """
    opening = replace(TALK, name="told-opening", messages=TALK.messages[:1])
    earlier, new = beginnings(ctx.rendered(TALK) or "", ctx.rendered(opening) or "")
    rest = earlier.removeprefix(new)
    if not new or not earlier.startswith(new) or rest.strip() or "\n" not in rest:
        return None
    return note(f"a new answer begins without the {rest!r} that stands before earlier ones")


def tokenizer_fault(failure: Fail, ctx: Context) -> Fail | None:
    """Return the failure as a fault of the tokenizer, where that changes prompts or answers."""
    whole = tokenizer_whole.run(ctx)
    why = whole.reason if isinstance(whole, Fail) else altered(ctx)
    return None if why is None else failing(failure, Stage.TOKENS, OWN, why)


def options_fault(failure: Fail, ctx: Context, answers: Mapping[str, Reply]) -> Fail | None:
    """Return the failure as a fault of what stands before the weights, where they answer right to the same
    tokens without a chat. Values of the document that change an answer are tried elsewhere.
    """
    wrote = {name: f"{reply.reasoning}\n{reply.content}" for name, reply in answers.items()}
    missed = [prompt for prompt in QUESTIONS if not prompt.answered_by(wrote[prompt.name])]
    bent = ctx.promise.hot or ctx.promise.stopwords or {*ctx.promise.client_sampling} - {*STEADY}
    counts = ctx.counted(missed[0]) if missed and not bent else None
    if counts is None or counts[0] != counts[1] or not turn_forms.right_by_itself(ctx, missed):
        return None
    right = note("behind the same text the weights answer right, where no chat is asked for")
    return failing(failure, Stage.SAMPLED, Reason(Remedy.HEED_OPTIONS, option="logit_bias"), right)


def judge_missed(missed: int, questions: int, gap: str | None = None) -> Fail:
    """Return the failure of wrong answers; ``gap`` is a number left out in the middle of counting."""
    weights = Reason(Remedy.WHOLE_WEIGHTS)
    if gap is not None:
        return differs("counting to ten", f"without {gap!r}", "whole", Stage.DRAWN, weights)
    return differs(
        "simple questions that are answered wrong", f"{missed} of {questions}", None, Stage.DRAWN, weights
    )


def left_out_simple_answers(reply: Reply) -> str | None:
    """Return the first number that an answer to a count to ten leaves out in the middle.

    An answer counts in words if it has half of the numbers in order; dots stand for omitted ones.
    """
    text = reply.content.casefold()
    if reply.finish_reason != "stop" or "..." in text or "…" in text:
        return None
    numbers = in_order(text)
    gaps = [
        n for n in NUMBERS if n not in numbers and any(NUMBERS.index(s) > NUMBERS.index(n) for s in numbers)
    ]
    return gaps[0] if gaps and 2 * len(numbers) >= len(NUMBERS) and numbers[:2] == list(NUMBERS[:2]) else None


def in_order(text: str) -> list[str]:
    """Return the numbers in words that ``text`` holds, each behind the one before."""
    numbers, position = [], 0
    for number in NUMBERS:
        match = re.compile(rf"\b{number}\b").search(text, position)
        if match is not None:
            numbers.append(number)
            position = match.end()
    return numbers


ALIKE_BOTH_WAYS = holding("both are alike")
CALL_MARKER = "markers of calls"
CUT = 24  # tokens of two answers that have no end of their own
REPEATS = 2  # further answers: a difference of the path repeats, one of random draws does not

Form = tuple[object, ...]


@probe(
    "stream-equals-whole",
    "Streaming paths lose calls, braces and reasoning: one parser emptied 27 of 64 splits, with HTTP 200.",
    needs=no_chat,
)
def stream_equals_whole(ctx: Context) -> Outcome:
    """Compare a plain question and, with tools, a call, the answer to its result, and words beside a tool."""
    calling = [] if no_tools(ctx.promise) else [WEATHER, WEATHER_ANSWERED, GREETING_WITH_TOOL]
    prompts = [GREETING, *calling]
    outcomes = [_compare(ctx, prompt) for prompt in prompts]
    flawed = [o for o in outcomes if not isinstance(o, Pass)]
    if flawed:
        return flawed[0]
    first, *notes = dict.fromkeys(o.reason for o in outcomes)
    return Pass(first, trials=len(outcomes), notes=tuple(notes))


def _compare(ctx: Context, prompt: Prompt) -> Outcome:
    whole, streamed = ctx.first(prompt), ctx.first(prompt, stream=True)
    cut: dict[str, Any] = {}
    if "length" in (whole.finish_reason, streamed.finish_reason):
        cut = {"max_tokens": CUT, **STEADY}  # what follows a missed end is babble, never twice the same
        whole, streamed = ctx.ask(prompt, **cut), ctx.ask(prompt, stream=True, **cut)
    if not streamed.ended:
        return differs("the end of a stream", None, "[DONE]", Stage.STREAM, WHOLE_ANSWERS, trials=2)
    if stream_form(whole) == stream_form(streamed):
        return ALIKE_BOTH_WAYS
    wholes = [whole, *(ctx.ask(prompt, **cut) for _ in range(REPEATS))]
    streams = [streamed, *(ctx.ask(prompt, stream=True, **cut) for _ in range(REPEATS))]
    if {stream_form(w) for w in wholes} & {stream_form(s) for s in streams}:
        return holding("answers vary from one to the next; both ways give the same ones", 1 + REPEATS)
    repeats_itself = len({stream_form(w) for w in wholes}) == 1
    if not repeats_itself and {shape(w) for w in wholes} & {shape(s) for s in streams}:
        return holding("answers vary from one to the next; both ways give the same parts", 1 + REPEATS)
    failure = replace(difference(whole, streamed), trials=1 + REPEATS)

    def like_the_whole(reply: Reply) -> Outcome:
        return ALIKE_BOTH_WAYS if stream_form(reply) == stream_form(whole) else failure

    return ctx.noted(prompt, like_the_whole, streaming_fault(ctx, prompt, failure), stream=True)


def stream_form(reply: Reply) -> Form:
    """Return the parts that must be equal: all but ids and white space at the edges."""
    calls = tuple((c.name, canonical_arguments(c.arguments)) for c in reply.tool_calls)
    return reply.content.strip(), reply.reasoning.strip(), calls, reply.finish_reason


def shape(reply: Reply) -> Form:
    """Return the parts that an answer has, for a comparison of sampled answers."""
    calls = tuple(c.name for c in reply.tool_calls)
    return bool(reply.content.strip()), bool(reply.reasoning.strip()), calls, reply.finish_reason


def difference(whole: Reply, streamed: Reply) -> Fail:
    """Return the failure of the first part that differs, both sides quoted."""
    names = ("content", "reasoning", "tool calls", "finish_reason")
    parts = zip(names, stream_form(whole), stream_form(streamed), strict=True)
    name, one, other = next((name, one, other) for name, one, other in parts if one != other)
    return differs(name, quoted(other), quoted(one), within=(STREAMED,))


CLEAN = holding("no markup in what is served")


@probe(
    "no-special-tokens",
    "End-of-turn tokens leaked in one of two streaming paths and not in the other; nobody looked at both.",
    needs=no_chat,
    alone=True,  # it reads the answers of all others
)
def no_special_tokens(ctx: Context) -> Outcome:
    """Judge the answers to a greeting, and to a tool's question and its result; then those of all probes."""
    prompts = [GREETING] if no_tools(ctx.promise) else [GREETING, WEATHER, WEATHER_ANSWERED]
    known, signs = ctx.shared.ended(), token_signs(ctx.promise)
    ctx.shared.leaking.update({prompt.name: prompt for prompt, reply in known if _leak(prompt, reply, signs)})
    prompts += [prompt for prompt in ctx.shared.leaking.values() if prompt not in prompts]
    for prompt in prompts:
        leaks = [_leak(prompt, ctx.first(prompt, stream=stream), signs) for stream in (False, True)]
        if leaks[1] and not leaks[0]:
            failure = replace(only_streamed(leaks[1]), trials=len(prompts) * 2)
            if asks_for(failure, Remedy.DECLARE):  # whole answers hide it, and go on behind it
                return failure
            return streaming_fault(ctx, prompt, failure)
        if leaks[0]:
            return ctx.noted(prompt, lambda reply: leak(reply, signs) or CLEAN, leaks[0])
    return replace(CLEAN, trials=max(len(prompts) * 2, len(known)))


def _leak(prompt: Prompt, reply: Reply, signs: tuple[str, ...]) -> Fail | None:
    """Return the failure of markup in an answer; a call as text is judged by those who ask for one."""
    found = leak(reply, signs)
    return None if found and prompt.tools and found.shows((SeenReason.DIFFERS, CALL_MARKER)) else found


def token_signs(promise: Expectations) -> tuple[str, ...]:
    """Return the texts that no client may see: the proof's markers and the document's stop words."""
    stops: Any = promise.client_sampling.get("stop") or ()
    return (*promise.markers, *((stops,) if isinstance(stops, str) else map(str, stops)))


def leak(reply: Reply, markers: tuple[str, ...] = ()) -> Fail | None:
    """Return the failure of the first markup in a reply, with its attribution."""
    for place, text in _texts(reply):
        if piece := undecoded(text):
            return differs(f"pieces of words in the {place}", quoted(piece), None, Stage.TOKENS, OWN)
        # A block that no parser took is the document's; a lone token is what this probe is for.
        if (shown := thought_shown(place, text)) is not None:
            return shown
        thought = place == "reasoning" and bool(reply.tool_calls or drafted(text, reply.content))
        if (marker := call_markup(text)) and not thought:
            return differs(CALL_MARKER, f"{marker} in the {place}", None, Stage.PARSED, OTHER_TOOL_PARSER)
        if token := control_token(text, markers):
            return _stray(token, place, text, reply)
    return None


def _stray(token: str, place: str, text: str, reply: Reply) -> Fail:
    if reply.finish_reason == "stop" and text.rstrip().endswith(token):
        return differs(f"the token in the {place} at which the engine stops", quoted(token), "hidden")
    declare = Reason(Remedy.DECLARE, token=token)
    return differs(f"a token in the {place}", quoted(token), "hidden", Stage.TOKENS, declare)


def _texts(reply: Reply) -> Iterator[tuple[str, str]]:
    yield "content", reply.content
    yield "reasoning", reply.reasoning
    for call in reply.tool_calls:
        yield "call's name", call.name
        yield "call's arguments", call.arguments


def needs_usage_counts(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or neither counts for streams nor the drawn tokens."""
    return no_chat(promise) or (promise.lacks("usage") and promise.lacks("logprobs", "drawn"))


@probe(
    "usage-counts",
    "Streams came without counts, or with others than the whole answer; probabilities were of other tokens.",
    needs=needs_usage_counts,
)
def usage_counts(ctx: Context) -> Outcome:
    """Compare the counts of one greeting, then its tokens with their probabilities."""
    outcomes = {} if ctx.promise.lacks("usage") else {"counts": _counts(ctx)}
    if not ctx.promise.lacks("logprobs", "drawn"):
        judge = partial(judge_log_probabilities, counts=bool(outcomes))
        shown = {"logprobs": True, "top_logprobs": TOP}
        outcomes["log-probabilities"] = ask_both_ways(ctx, GREETING, judge, **shown)
    return together(outcomes)


def _counts(ctx: Context) -> Outcome:
    """Compare the counts of the whole and the streamed answer."""
    whole, streamed = ctx.first(GREETING), ctx.first(GREETING, stream=True)
    if ctx.promise.counted is False and not whole.usage.uncounted:
        return differs(
            "prompt_tokens of a short and a long prompt", total_of(whole, "prompt_tokens"), "two counts"
        )
    return judge_usage_counts(whole, streamed)


def judge_usage_counts(whole: Reply, streamed: Reply) -> Outcome:
    """Judge two answers to one prompt."""
    if whole.usage.prompt is None and whole.usage.completion is None:
        return needless("the engine does not count tokens")
    for name, reply in (("whole", whole), ("streamed", streamed)):
        flaw = _flaw(reply)
        if flaw is not None:
            return named(flaw, name)
    if whole.usage.prompt != streamed.usage.prompt:
        return differs("prompt_tokens, streamed", streamed.usage.prompt, quoted(whole.usage.prompt))
    counts = streamed.usage.completion, whole.usage.completion
    same = (whole.content, whole.reasoning) == (streamed.content, streamed.reasoning)
    if same and counts[0] != counts[1]:
        what = "completion_tokens of the same answer, streamed"
        return differs(what, counts[0], quoted(counts[1]))
    usage = whole.usage
    return holding(f"{usage.prompt} tokens of prompt, {usage.completion} of answer, whole and streamed", 2)


def total_of(reply: Reply, key: str) -> object:
    """Return the last figure of this name in the counts of an answer."""
    counts = (data.get("usage") for data in reply.raw)
    return next((one[key] for one in reversed([*counts]) if isinstance(one, dict) and key in one), None)


def _flaw(reply: Reply) -> Fail | None:
    usage, total = reply.usage, total_of(reply, "total_tokens")
    counts = (0 if usage.uncounted else usage.prompt, usage.completion)
    if not counts[0] or counts[1] is None or (reply.content.strip() and not counts[1]):
        return differs("tokens of prompt and answer", counts, "one or more of each")
    if isinstance(total, int) and total != counts[0] + counts[1]:
        return differs("total_tokens", total, counts[0] + counts[1])
    return None


TOP = 3
SLACK = 1e-3  # rounding of a log-probability


def judge_log_probabilities(reply: Reply, *, counts: bool = True) -> Outcome:
    """Judge an answer beside the log-probabilities of its tokens; ``counts`` if the engine's counts are
    right.
    """
    entries = [entry for entry in reply.logprobs if isinstance(entry, dict)]
    if not entries:
        return needless("the engine shows no log-probabilities")
    flawed = next((flaw for entry in entries if (flaw := _probability_flaw(entry)) is not None), None)
    if flawed is not None:
        return flawed
    count = reply.usage.completion if counts else None
    if count is not None and not count - 1 <= len(entries) <= count:  # the end token may be left out
        return differs("log-probabilities", len(entries), count)
    if not holds(reply.written, reply.content):
        return differs("the tokens of log-probabilities", quoted(reply.written), quoted(reply.content))
    return holding(f"log-probabilities of {len(entries)} tokens, which make the answer")


def _probability_flaw(entry: Mapping[str, object]) -> Fail | None:
    """Return the fault of one token's entry, or ``None``."""
    top = [t for t in listed(entry.get("top_logprobs")) if isinstance(t, dict)]
    values = [e.get("logprob") for e in (entry, *top)]
    made = next((text for e in (entry, *top) if (text := other_bytes(e)) is not None), None)
    if made is not None:
        return differs("the bytes of a token", quoted(made), quoted(entry.get("token")))
    if not all(isinstance(v, int | float) and v <= SLACK for v in values):
        return differs("log-probabilities", values, "numbers below zero")
    # The drawn token may stand among the best, before or behind them.
    ranked = [t["logprob"] for t in top if t.get("token") != entry.get("token")]
    best = sorted(ranked, reverse=True)
    return None if ranked == best else differs("the order of the best tokens", ranked, best)
