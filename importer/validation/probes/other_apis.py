"""Probes of the other APIs of one server: Anthropic's messages and OpenAI's responses."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from importer.hub.snapshot import listed
from importer.reasons import Reason
from importer.validation.calls import first_call, judge_call
from importer.validation.context import WAYS, Context, in_turn, together
from importer.validation.expectations import Expectations, no_chat, no_reasoning, no_tools
from importer.validation.other_apis import (
    MESSAGES,
    RESPONSES,
    Api,
    compared,
    items_of,
    judged_beside,
    output,
    tools_left_out,
)
from importer.validation.outcome import Inconclusive, NotApplicable, Outcome, Pass, differs, holding, not_done
from importer.validation.probe import probe
from importer.validation.probes.chat import judge_plain_chat, leak, token_signs
from importer.validation.probes.reasoning import judge_reasoning_apart
from importer.validation.probes.tools import id_answered, judge_tool_result_turn
from importer.validation.prompts import GREETING, SUM, SUM_THINKING, WEATHER, Prompt
from importer.validation.reply import Reply

APIS = (MESSAGES, RESPONSES)


def needs_other_paths(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine with neither path."""
    lacking = [promise.unsure(api.feature) for api in APIS]
    return no_chat(promise) or (lacking[0] if all(lacking) else None)


@probe(
    "other-paths",
    "Special tokens, calls as text, streams that end otherwise: these paths have parsers of their own.",
    needs=needs_other_paths,
)
def other_paths(ctx: Context) -> Outcome:
    """Judge /v1/messages and /v1/responses beside the chat."""
    offered = [api for api in APIS if ctx.promise.unsure(api.feature) is None]
    return in_turn({api.path: partial(_api, ctx, api) for api in offered})


def _api(ctx: Context, api: Api) -> Outcome:
    """Judge a greeting and, where the chat has them, a thought, a call and the answer to its result."""
    signs, ask = token_signs(ctx.promise), partial(api.ask, ctx)
    greeted = judged_beside(ctx, GREETING, partial(ask, GREETING), partial(judge_greeting, markers=signs))
    outcomes = {"greeting": greeted, "alike": compared(ctx, GREETING, api.ask)}
    thinking = None if api is MESSAGES or no_reasoning(ctx.promise) else _thinking(ctx)
    if thinking is not None:
        outcomes["thought"] = judged_beside(ctx, thinking, partial(ask, thinking), judge_reasoning_apart)
    if no_tools(ctx.promise) is None and not isinstance(first_call(ctx), NotApplicable):
        called = outcomes["call"] = _called(ctx, api, signs)
        if api is RESPONSES and isinstance(called, Pass):
            outcomes["result"] = _answered(ctx)
    if api is MESSAGES and not ctx.promise.lacks("counts"):
        prompts = [GREETING, WEATHER] if ctx.promise.tool_parser else [GREETING]
        outcomes["count"] = judge_count_tokens([(_before(ctx, p), _used(ctx, api, p)) for p in prompts])
    return together({name: outcome for name, outcome in outcomes.items() if outcome is not None})


def judge_greeting(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting."""
    return leak(reply, markers) or judge_plain_chat(reply, markers)


def judge_called(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer that should be a call."""
    return leak(reply, markers) or judge_call(reply, WEATHER)


def _called(ctx: Context, api: Api, signs: tuple[str, ...]) -> Outcome:
    """Judge a call; without one, compare the length of the prompt with that of the chat."""
    whole_only = api is RESPONSES and ctx.promise.lacks("call-pieces") is not None
    ways = {"whole": False} if whole_only else WAYS
    judge = partial(judge_called, markers=signs)
    outcome = judged_beside(ctx, WEATHER, partial(api.ask, ctx, WEATHER), judge, ways)
    if not isinstance(outcome, Inconclusive):
        return outcome
    return tools_left_out(ctx.first(WEATHER).usage.prompt, _used(ctx, api, WEATHER)) or outcome


def _used(ctx: Context, api: Api, prompt: Prompt) -> int | None:
    """Return the prompt tokens in the usage of an answer."""
    fewest: dict[str, Any] = {api.limit: 1}
    return api.ask(ctx, prompt, **fewest).usage.prompt


def _before(ctx: Context, prompt: Prompt) -> Any:
    """Return the count of the endpoint."""
    body = {"model": ctx.model, **MESSAGES.body(prompt)}
    answer = ctx.client.post(f"{MESSAGES.path}/count_tokens", body, ctx.log)
    return answer.get("input_tokens") if isinstance(answer, dict) else None


def judge_count_tokens(counts: list[tuple[Any, int | None]]) -> Outcome:
    """Judge the counts before and in the answer of each prompt; an answer may count none."""
    for before, after in counts:
        if type(before) is not int or before < 1 or after not in (None, before):
            return differs("tokens that are counted before", before, after)
    shown = ", ".join(str(before) for before, _ in counts)
    return holding(f"tokens before as in the answer: {shown}", len(counts))


def _thinking(ctx: Context) -> Prompt | None:
    """Return the first prompt whose chat has a thought."""
    prompts = (SUM,) if ctx.promise.lacks("switches") else (SUM, SUM_THINKING)
    return next((prompt for prompt in prompts if ctx.first(prompt).reasoning.strip()), None)


RESULT = json.dumps({"temperature": -3, "condition": "snowy"})


def _answered(ctx: Context) -> Outcome:
    """Send back the engine's own items with the result of the call, and judge the answer."""
    reply = RESPONSES.ask(ctx, WEATHER)
    if not reply.tool_calls:
        return not_done("the model answered without a call")
    items = [*items_of(WEATHER), *listed(reply.raw[0]["output"])]
    items += [output(one.id, RESULT) for one in reply.tool_calls]
    ask = partial(RESPONSES.ask, ctx, WEATHER, input=items)
    return judged_beside(ctx, id_answered(reply.tool_calls[0]), ask, judge_tool_result_turn)
