"""Probes of the other APIs of one server: Anthropic's messages and OpenAI's responses."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

from importer.hub.snapshot import listed
from importer.reasons import Reason, ReasonKind
from importer.validation import other_apis
from importer.validation.calls import CallReason, first_call, judge_call
from importer.validation.context import WAYS, Context, in_turn, together
from importer.validation.expectations import Expectations, no_reasoning, no_tools
from importer.validation.other_apis import FormatReason, numbered
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, Stage, named
from importer.validation.probe import probe
from importer.validation.probes.chat import judge_plain_chat, leak, token_signs
from importer.validation.probes.reasoning import judge_reasoning_apart
from importer.validation.probes.tools import id_answered, judge_tool_result_turn
from importer.validation.prompts import GREETING, SUM, SUM_THINKING, WEATHER, Prompt
from importer.validation.reply import Reply


def needs_other_paths(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine with neither path."""
    return other_apis.needs_anthropic(promise) and other_apis.needs_responses(promise)


@probe(
    "other-paths",
    "Special tokens, calls as text, streams that end otherwise: these paths have parsers of their own.",
    needs=needs_other_paths,
)
def other_paths(ctx: Context) -> Outcome:
    """Judge /v1/messages and /v1/responses beside the chat."""
    parts = {"/v1/messages": messages} if other_apis.needs_anthropic(ctx.promise) is None else {}
    parts |= {"/v1/responses": responses} if other_apis.needs_responses(ctx.promise) is None else {}
    return in_turn({path: partial(part, ctx) for path, part in parts.items()})


def messages(ctx: Context) -> Outcome:
    """Judge a greeting and, where the chat calls a tool, a call; then the count of tokens."""
    signs = token_signs(ctx.promise)
    outcomes = {"greeting": other_apis.judged(ctx, GREETING, lambda reply: judge_messages(reply, signs))}
    if (apart := other_apis.compared(ctx, GREETING, other_apis.ask_anthropic)) is not None:
        outcomes["alike"] = apart
    if _calls(ctx):
        outcomes["call"] = _messages_tools(ctx, signs)
    if not ctx.promise.lacks("counts"):
        outcomes["count"] = _count_tokens(ctx)
    return together(outcomes)


def _calls(ctx: Context) -> bool:
    """Return whether the chat answers the simple question with a call."""
    return no_tools(ctx.promise) is None and not isinstance(first_call(ctx), NotApplicable)


def judge_messages(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting."""
    return leak(reply, markers) or judge_plain_chat(reply, markers)


def _messages_tools(ctx: Context, signs: tuple[str, ...]) -> Outcome:
    """Judge both ways; without a call, compare the length of the prompt with that of the chat."""
    outcome = other_apis.judged(ctx, WEATHER, lambda reply: judge_messages_tools(reply, signs))
    if not isinstance(outcome, Inconclusive):
        return outcome
    chat, here = ctx.first(WEATHER), other_apis.ask_anthropic(ctx, WEATHER, max_tokens=1)
    return other_apis.tools_left_out(chat.usage.prompt, here.usage.prompt) or outcome


def judge_messages_tools(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer that should be a call."""
    return leak(reply, markers) or judge_call(reply, WEATHER)


class CountTokensReason(ReasonKind):
    """The reasons of a count of tokens before an answer."""

    NO_NUMBER = "no-number", "{prompt}: input_tokens is {before!r}"
    DIFFERS = "differs", "{prompt}: {before} tokens counted before, {after} in the answer"
    NO_COUNT = "no-count", "the answers do not count their prompt"
    COUNTED = "counted", "{prompt} {tokens}"
    SAME = "same", "tokens before as in the answer: {counts}"


def _count_tokens(ctx: Context) -> Outcome:
    """Count a greeting, and a question with a tool."""
    prompts = [GREETING, WEATHER] if ctx.promise.tool_parser else [GREETING]
    return judge_count_tokens([(prompt.name, counted(ctx, prompt), used(ctx, prompt)) for prompt in prompts])


def counted(ctx: Context, prompt: Prompt) -> Any:
    """Return the count of the endpoint."""
    body = {"model": ctx.model, **other_apis.request(prompt)}
    answer = ctx.client.post(f"{other_apis.PATH}/count_tokens", body, ctx.log)
    return answer.get("input_tokens") if isinstance(answer, dict) else None


def used(ctx: Context, prompt: Prompt) -> int | None:
    """Return the prompt tokens in the usage of the answer."""
    return other_apis.ask_anthropic(ctx, prompt, max_tokens=1).usage.prompt


def judge_count_tokens(counts: list[tuple[str, Any, int | None]]) -> Outcome:
    """Judge name, count before and count in the answer of each prompt."""
    for name, before, after in counts:
        if not isinstance(before, int) or isinstance(before, bool) or before < 1:
            return Fail(Reason(CountTokensReason.NO_NUMBER, prompt=name, before=before), Stage.WHOLE)
        if after is not None and before != after:
            return Fail(
                Reason(CountTokensReason.DIFFERS, prompt=name, before=before, after=after), Stage.WHOLE
            )
    if all(after is None for _, _, after in counts):
        return NotApplicable(Reason(CountTokensReason.NO_COUNT))
    reasons = tuple(
        Reason(CountTokensReason.COUNTED, prompt=name, tokens=before) for name, before, _ in counts
    )
    return Pass(Reason(CountTokensReason.SAME, counts=reasons), trials=len(counts))


def responses(ctx: Context) -> Outcome:
    """Judge a greeting and what the chat has, whole and streamed: a thought, a call and the answer to it."""
    signs = token_signs(ctx.promise)
    outcomes = {
        "greeting": other_apis.judged_responses(ctx, GREETING, lambda reply: judge_responses(reply, signs))
    }
    if (apart := other_apis.compared(ctx, GREETING, other_apis.ask_responses)) is not None:
        outcomes["alike"] = apart
    thinking = None if no_reasoning(ctx.promise) else _thinking(ctx)
    if thinking is not None:
        outcomes["thought"] = other_apis.judged_responses(ctx, thinking, judge_reasoning_apart)
    if _calls(ctx):
        outcomes["call"] = _responses_tools(ctx, signs)
    return together(outcomes)


def judge_responses(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting; a stream without any number is noted."""
    outcome = leak(reply, markers) or judge_plain_chat(reply, markers)
    if isinstance(outcome, Pass) and len(reply.raw) > 1 and not numbered(reply):
        return replace(outcome, notes=(*outcome.notes, Reason(FormatReason.UNNUMBERED)))
    return outcome


def _thinking(ctx: Context) -> Prompt | None:
    """Return the first prompt whose chat has a thought."""
    prompts = (SUM,) if ctx.promise.lacks("switches") else (SUM, SUM_THINKING)
    return next((prompt for prompt in prompts if ctx.first(prompt).reasoning.strip()), None)


RESULT = json.dumps({"temperature": -3, "condition": "snowy"})


def _responses_tools(ctx: Context, signs: tuple[str, ...]) -> Outcome:
    """Judge a call both ways, then the answer to its result; without a call, the length of the prompt."""
    lacking = ctx.promise.lacks("call-pieces")
    ways = WAYS if lacking is None else {"whole": False}
    called = other_apis.judged_responses(
        ctx, WEATHER, lambda reply: judge_responses_tools(reply, signs), ways
    )
    if isinstance(called, Inconclusive):
        chat, here = ctx.first(WEATHER), other_apis.ask_responses(ctx, WEATHER, max_output_tokens=1)
        return other_apis.tools_left_out(chat.usage.prompt, here.usage.prompt) or called
    if not isinstance(called, Pass):
        return called
    answered = _answered(ctx)
    if not isinstance(answered, Pass):
        return named(answered, "result")
    notes = (*called.notes, answered.reason, *([lacking] if lacking else []))
    return replace(called, trials=called.trials + answered.trials, notes=notes)


def judge_responses_tools(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer that should be a call."""
    return leak(reply, markers) or judge_call(reply, WEATHER)


def _answered(ctx: Context) -> Outcome:
    """Send back the engine's own items with the result of the call, and judge the answer."""
    reply = other_apis.ask_responses(ctx, WEATHER)
    if not reply.tool_calls:
        return Inconclusive(Reason(CallReason.NO_CALL), Stage.DRAWN)
    call = reply.tool_calls[0]
    items = [*other_apis.items_of(WEATHER), *listed(reply.raw[0]["output"])]
    results = [other_apis.output(one.id, RESULT) for one in reply.tool_calls]

    def ask(stream: bool) -> Reply:
        return other_apis.ask_responses(ctx, WEATHER, stream=stream, input=[*items, *results])

    return other_apis.judged_beside(ctx, id_answered(call), ask, judge_tool_result_turn)
