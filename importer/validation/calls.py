"""The judge of tool calls, for whole and streamed answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from importer.hub.snapshot import mapping
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.diagnosis import (
    TOOLS,
    endless,
    only_streamed,
    streaming_fault,
    swallowed,
    swallowing,
    unseen,
)
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    Stage,
    differs,
    holding,
    needless,
    not_done,
    quoted,
)
from importer.validation.prompts import WEATHER, Prompt
from importer.validation.remedy import OTHER_REASONING_PARSER, OTHER_TOOL_PARSER
from importer.validation.reply import NO_JSON, Reply, ToolCall, loaded
from importer.validation.tool_markup import call_markup, drafted, gives_argument, looks_like_call, outside


def judge_call(reply: Reply, prompt: Prompt) -> Outcome:
    """Judge an answer to a prompt that calls for one of its tools."""
    if not reply.tool_calls:
        return _judge_missing(reply, prompt)
    if reply.finish_reason == "length":
        return endless(reply)
    for call in reply.tool_calls:
        flaw = _flaw(call, prompt, reply)
        if flaw is not None:
            return flaw
    remains = call_markup(reply.content) or looks_like_call(reply.content, prompt.tools)
    if remains is not None:
        return _misread("text of a call in the content beside it", quoted(remains), None)
    if reply.finish_reason != "tool_calls":
        return differs("finish_reason of a call", reply.finish_reason, "tool_calls")
    first = reply.tool_calls[0]
    if prompt.expects and not any(word in plain(first.arguments) for word in prompt.expects):
        wrote = reply.written.casefold()
        if any(word in wrote and not word.isascii() for word in prompt.expects):
            return differs(
                "letters of a call's arguments", quoted(first.arguments), "those that the model writes"
            )
        return not_done("the call asks for something else", quoted(first.arguments))
    return holding(f"{first.name} {first.arguments}")


def first_call(ctx: Context) -> ToolCall | NotApplicable:
    """Return the call of the probe ``tool-call``, for probes that go on from it."""
    reply = ctx.first(WEATHER)
    if isinstance(judge_call(reply, WEATHER), Pass):
        return reply.tool_calls[0]
    return needless("there is no good call to go on from: see tool-call")


def plain(arguments: str) -> str:
    """Return arguments in lower case with escaped letters decoded; invalid JSON stays as text."""
    value = loaded(arguments, NO_JSON)
    return (arguments if value is NO_JSON else json.dumps(value, ensure_ascii=False)).casefold()


def both_ways(ctx: Context, prompt: Prompt, judge: Callable[[Reply], Outcome]) -> Outcome:
    """Judge the whole answer, then the streamed one; where only that fails, streaming is at fault."""
    whole = ctx.judged(prompt, judge)
    if isinstance(whole, Inconclusive):
        return unseen(ctx, TOOLS) or whole
    if not isinstance(whole, Pass):
        return whole
    streamed = ctx.judged(prompt, judge, stream=True)
    if isinstance(streamed, Pass):
        return replace(streamed, trials=whole.trials + streamed.trials, agreed=2)
    return streaming_fault(ctx, prompt, only_streamed(streamed))


def _misread(what: str, came: object, expected: object, remedy: Reason = OTHER_TOOL_PARSER) -> Fail:
    return differs(what, came, expected, Stage.PARSED, remedy)


def _judge_missing(reply: Reply, prompt: Prompt) -> Fail | Inconclusive:
    """Judge an answer without a call: whether the model wrote one outside of its thoughts."""
    if reply.old_field is not None:
        return differs("the field of a call", reply.old_field, "tool_calls")
    unread = judge_unread(reply, prompt)
    if unread is not None:
        return unread
    if reply.finish_reason == "length":
        return endless(reply)
    if reply.finish_reason == "tool_calls":
        return _misread("calls of an answer with the finish_reason tool_calls", 0, "one or more")
    if swallowed(reply):
        return replace(swallowing(reply), remedy=OTHER_TOOL_PARSER)
    return not_done("the model answered without a call")


def judge_unread(reply: Reply, prompt: Prompt) -> Fail | None:
    """Return the fault of a call that the model wrote and nothing read; ``None`` where there is none."""
    for place, text in _places(reply).items():
        quote = looks_like_call(text, prompt.tools) or call_markup(text)
        if quote is not None:
            of = OTHER_REASONING_PARSER if place == "reasoning" else OTHER_TOOL_PARSER
            return _misread(f"a call that the model wrote, in {place}", quoted(quote), "read as one", of)
    return None


def _places(reply: Reply) -> dict[str, str]:
    """Return the parts of an answer that may hold a call that was not parsed.

    A call in thoughts that go on in words, or in front of an answer, is a draft: the model decided
    otherwise.
    """
    content = outside(reply.content)
    thoughts = reply.reasoning if drafted(reply.reasoning, content) else ""
    return {
        "content": content,
        "reasoning": "" if thoughts else reply.reasoning,
        "no part of the answer": outside(reply.written, thoughts),
    }


def _flaw(call: ToolCall, prompt: Prompt, reply: Reply) -> Fail | Inconclusive | None:
    """Return the fault of one call, or ``None``."""
    written = reply.written
    schemas = {t["function"]["name"]: t["function"].get("parameters", {}) for t in prompt.tools}
    if call.name not in schemas:
        if any(name in call.name for name in schemas):
            return _misread("the name of a call", quoted(call.name), "a name alone")
        return not_done("the model called what it was not offered", quoted(call.name))
    if not call.id:
        return differs("the id of a call", quoted(call.id), "one for its result")
    if (arguments := loaded(call.arguments, NO_JSON)) is NO_JSON:
        return differs("arguments of a call", quoted(call.arguments), "JSON")
    if isinstance(arguments, str):
        return _misread("arguments of a call", quoted(call.arguments), "JSON that is encoded once")
    drawn = mapping(arguments) if reply.logprobs else {}  # the text of another draw may have another call
    if written and (added := next((k for k in drawn if k not in written), None)) is not None:
        return _misread("an argument that the model did not write", quoted(added), None)
    return _schema_flaw(arguments, schemas[call.name], written)


def _schema_flaw(arguments: Any, schema: Mapping[str, object], written: str) -> Fail | Inconclusive | None:
    from jsonschema import Draft202012Validator

    error = next(Draft202012Validator(schema).iter_errors(arguments), None)
    if error is None:
        return None
    text = error.instance if error.validator == "type" else None
    if isinstance(text, str) and loaded(text, NO_JSON) is not NO_JSON:
        return _misread("a value of a call", f"the text {quoted(text)}", "one of its schema's type")
    required = error.validator_value if error.validator == "required" else ()
    lost = [key for key in required if key not in error.instance and gives_argument(written, key)]
    if lost:
        return _misread(f"the argument {lost[0]!r} that the model wrote", "left out", None)
    return not_done("the arguments do not fit the tool's schema", error.message)
