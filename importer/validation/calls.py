"""Is this a tool call that a client can use? The one judge for whole and streamed answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from importer.validation.blame import (
    OTHER_REASONING_PARSER,
    OTHER_TOOL_PARSER,
    endless,
    streaming_fault,
    swallowed,
    tools_unseen,
)
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.prompts import WEATHER, Prompt
from importer.validation.reply import Reply, ToolCall
from importer.validation.signs import call_markup, drafted, gives_argument, looks_like_call, outside


def judge_call(reply: Reply, prompt: Prompt) -> Outcome:
    """Judge an answer to a prompt that calls for one of its tools."""
    if not reply.tool_calls:
        return _judge_missing(reply, prompt)
    if reply.finish_reason == "length":
        return endless(reply)
    for call in reply.tool_calls:
        flaw = _flaw(call, prompt, reply.written)
        if flaw is not None:
            return flaw
    remains = call_markup(reply.content) or looks_like_call(reply.content, prompt.tools)
    if remains is not None:
        return Fail(
            f"the call was read, but its text is still in the content: {remains!r}",
            "configuration",
            OTHER_TOOL_PARSER,
        )
    if reply.finish_reason != "tool_calls":
        return Fail(f"finish_reason is {reply.finish_reason!r}, not 'tool_calls'", "engine")
    first = reply.tool_calls[0]
    if prompt.expects and not any(word in plain(first.arguments) for word in prompt.expects):
        wrote = reply.written.casefold()
        if any(word in wrote and not word.isascii() for word in prompt.expects):
            return Fail(f"letters changed on the way: {first.arguments[:200]!r}", "engine")
        return Inconclusive(f"the call asks for something else: {first.arguments}", "model")
    return Pass(f"{first.name} {first.arguments}")


def first_call(ctx: Context) -> ToolCall | NotApplicable:
    """The call that ``tool-call`` is about, for probes that go on from it."""
    reply = ctx.first(WEATHER)
    if isinstance(judge_call(reply, WEATHER), Pass):
        return reply.tool_calls[0]
    return NotApplicable("there is no good call to go on from: see tool-call")


def plain(arguments: str) -> str:
    """Arguments in lower case, escaped letters as themselves; what is no JSON as it stands."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False).casefold()
    except (ValueError, RecursionError):
        return arguments.casefold()


def both_ways(ctx: Context, prompt: Prompt, judge: Callable[[Reply], Outcome]) -> Outcome:
    """Judge the whole answer, then the streamed one; where only that fails, streaming is at fault."""
    whole = ctx.judged(prompt, judge)
    if isinstance(whole, Inconclusive):
        return tools_unseen(ctx) or whole
    if not isinstance(whole, Pass):
        return whole
    streamed = ctx.judged(prompt, judge, stream=True)
    if isinstance(streamed, Pass):
        return replace(streamed, trials=whole.trials + streamed.trials, agreed=2)
    reason = f"streamed: {streamed.reason}; the whole answer is right"
    return streaming_fault(ctx, prompt, reason, streamed.trials)


def _judge_missing(reply: Reply, prompt: Prompt) -> Fail | Inconclusive:
    """No call arrived: did the model write one, and not only think of it?"""
    for place, text in _places(reply).items():
        quote = looks_like_call(text, prompt.tools) or call_markup(text)
        if quote is not None:
            return Fail(
                f"the model wrote a call and it arrived as {place}: {quote!r}",
                "configuration",
                OTHER_REASONING_PARSER if place == "reasoning" else OTHER_TOOL_PARSER,
            )
    if reply.finish_reason == "length":
        return endless(reply)
    if reply.finish_reason == "tool_calls":
        return Fail(
            "finish_reason says tool_calls and there is none: the parser lost it",
            "configuration",
            OTHER_TOOL_PARSER,
        )
    if swallowed(reply):
        return Fail(
            f"the model wrote {reply.usage.completion} tokens and nothing of them arrived",
            "configuration",
            OTHER_TOOL_PARSER,
        )
    return Inconclusive("the model answered without a call", "model")


def _places(reply: Reply) -> dict[str, str]:
    """Where a call may have ended up.

    One in thoughts that go on in words, or in front of an answer, is a draft: the model decided otherwise.
    """
    content = outside(reply.content)
    thoughts = reply.reasoning if drafted(reply.reasoning, content) else ""
    return {
        "content": content,
        "reasoning": "" if thoughts else reply.reasoning,
        "no part of the answer": outside(reply.written, thoughts),
    }


def _flaw(call: ToolCall, prompt: Prompt, written: str) -> Fail | Inconclusive | None:
    """What is wrong with one call."""
    schemas = {t["function"]["name"]: t["function"].get("parameters", {}) for t in prompt.tools}
    if call.name not in schemas:
        if any(name in call.name for name in schemas):
            return Fail(
                f"the call's name holds more than a name: {call.name!r}", "configuration", OTHER_TOOL_PARSER
            )
        return Inconclusive(f"the model called {call.name!r}, which it was not offered", "model")
    if not call.id:
        return Fail("the call has no id, so no result can be given for it", "engine")
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return Fail(f"the arguments are not JSON: {call.arguments[:200]!r}", "engine")
    if isinstance(arguments, str):
        return Fail(
            f"the arguments are encoded twice: {call.arguments[:200]!r}", "configuration", OTHER_TOOL_PARSER
        )
    return _schema_flaw(arguments, schemas[call.name], written)


def _schema_flaw(arguments: Any, schema: Mapping[str, Any], written: str) -> Fail | Inconclusive | None:
    from jsonschema import Draft202012Validator

    error = next(Draft202012Validator(schema).iter_errors(arguments), None)
    if error is None:
        return None
    if error.validator == "type" and isinstance(error.instance, str) and _is_json(error.instance):
        return Fail(
            f"a value is text where it is not meant to be: {error.message}",
            "configuration",
            OTHER_TOOL_PARSER,
        )
    wanted = error.validator_value if error.validator == "required" else ()
    lost = [key for key in wanted if key not in error.instance and gives_argument(written, key)]
    if lost:
        return Fail(
            f"the model wrote {lost[0]!r}, and the call arrived without it",
            "configuration",
            OTHER_TOOL_PARSER,
        )
    return Inconclusive(f"the arguments do not fit the tool's schema: {error.message}", "model")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
