"""The judge of tool calls, for whole and streamed answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.diagnosis import endless, only_streamed, streaming_fault, swallowed, tools_unseen
from importer.validation.expectations import CommonReason
from importer.validation.mutations import ends_otherwise
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, Stage
from importer.validation.prompts import WEATHER, Prompt
from importer.validation.remedy import OTHER_REASONING_PARSER, OTHER_TOOL_PARSER, Remedy
from importer.validation.reply import Reply, ToolCall
from importer.validation.tool_markup import call_markup, drafted, gives_argument, looks_like_call, outside


class CallReason(ReasonKind):
    """What is right or wrong with a call."""

    CALL_IN_CONTENT = (
        "call-in-content",
        "the call was read, but its text is still in the content: {remains!r}",
    )
    NOT_FINISHED = "not-finished", "finish_reason is {finish_reason!r}, not 'tool_calls'"
    LETTERS_CHANGED = "letters-changed", "letters changed on the way: {arguments!r}"
    ASKS_OTHER = "asks-other", "the call asks for something else: {arguments}"
    CALLED = "called", "{name} {arguments}"
    NO_GOOD_CALL = "no-good-call", "there is no good call to go on from: see tool-call"
    ARRIVED_AS = "arrived-as", "the model wrote a call and it arrived as {place}: {quote!r}"
    LOST = "lost", "finish_reason says tool_calls and there is none: the parser lost it"
    OLD_FIELD = "old-field", "the call came as {field}, which clients have not read since there are several"
    NO_CALL = "no-call", "the model answered without a call"
    NAME_HOLDS_MORE = "name-holds-more", "the call's name holds more than a name: {name!r}"
    NOT_OFFERED = "not-offered", "the model called {name!r}, which it was not offered"
    NO_ID = "no-id", "the call has no id, so no result can be given for it"
    NOT_JSON = "not-json", "the arguments are not JSON: {arguments!r}"
    ENCODED_TWICE = "encoded-twice", "the arguments are encoded twice: {arguments!r}"
    TEXT_FOR_VALUE = "text-for-value", "a value is text where it is not meant to be: {message}"
    ARGUMENT_LOST = "argument-lost", "the model wrote {lost!r}, and the call arrived without it"
    UNFIT = "unfit", "the arguments do not fit the tool's schema: {problem}"


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
        return Fail(Reason(CallReason.CALL_IN_CONTENT, remains=remains), Stage.PARSED, OTHER_TOOL_PARSER)
    if reply.finish_reason != "tool_calls":
        return Fail(
            Reason(CallReason.NOT_FINISHED, finish_reason=reply.finish_reason),
            Stage.WHOLE,
            ends_otherwise("tool_calls", reply),
        )
    first = reply.tool_calls[0]
    if prompt.expects and not any(word in plain(first.arguments) for word in prompt.expects):
        wrote = reply.written.casefold()
        if any(word in wrote and not word.isascii() for word in prompt.expects):
            return Fail(Reason(CallReason.LETTERS_CHANGED, arguments=first.arguments[:200]), Stage.WHOLE)
        return Inconclusive(Reason(CallReason.ASKS_OTHER, arguments=first.arguments), Stage.DRAWN)
    return Pass(Reason(CallReason.CALLED, name=first.name, arguments=first.arguments))


def first_call(ctx: Context) -> ToolCall | NotApplicable:
    """Return the call of the probe ``tool-call``, for probes that go on from it."""
    reply = ctx.first(WEATHER)
    if isinstance(judge_call(reply, WEATHER), Pass):
        return reply.tool_calls[0]
    return NotApplicable(Reason(CallReason.NO_GOOD_CALL))


def plain(arguments: str) -> str:
    """Return arguments in lower case with escaped letters decoded; invalid JSON stays as text."""
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
    return streaming_fault(ctx, prompt, only_streamed(streamed))


def _judge_missing(reply: Reply, prompt: Prompt) -> Fail | Inconclusive:
    """Judge an answer without a call: whether the model wrote one outside of its thoughts."""
    if reply.old_field is not None:
        old = Reason(CallReason.OLD_FIELD, field=reply.old_field)
        return Fail(old, Stage.WHOLE, Reason(Remedy.ANSWERS_UNALTERED, change=old))
    unread = judge_unread(reply, prompt)
    if unread is not None:
        return unread
    if reply.finish_reason == "length":
        return endless(reply)
    if reply.finish_reason == "tool_calls":
        return Fail(Reason(CallReason.LOST), Stage.PARSED, OTHER_TOOL_PARSER)
    if swallowed(reply):
        return Fail(
            Reason(CommonReason.NOTHING_ARRIVED, tokens=reply.usage.completion),
            Stage.PARSED,
            OTHER_TOOL_PARSER,
        )
    return Inconclusive(Reason(CallReason.NO_CALL), Stage.DRAWN)


def judge_unread(reply: Reply, prompt: Prompt) -> Fail | None:
    """Return the fault of a call that the model wrote and nothing read; ``None`` where there is none."""
    for place, text in _places(reply).items():
        quote = looks_like_call(text, prompt.tools) or call_markup(text)
        if quote is not None:
            return Fail(
                Reason(CallReason.ARRIVED_AS, place=place, quote=quote),
                Stage.PARSED,
                OTHER_REASONING_PARSER if place == "reasoning" else OTHER_TOOL_PARSER,
            )
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


def _flaw(call: ToolCall, prompt: Prompt, written: str) -> Fail | Inconclusive | None:
    """Return the fault of one call, or ``None``."""
    schemas = {t["function"]["name"]: t["function"].get("parameters", {}) for t in prompt.tools}
    if call.name not in schemas:
        if any(name in call.name for name in schemas):
            return Fail(Reason(CallReason.NAME_HOLDS_MORE, name=call.name), Stage.PARSED, OTHER_TOOL_PARSER)
        return Inconclusive(Reason(CallReason.NOT_OFFERED, name=call.name), Stage.DRAWN)
    if not call.id:
        return Fail(Reason(CallReason.NO_ID), Stage.WHOLE)
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return Fail(Reason(CallReason.NOT_JSON, arguments=call.arguments[:200]), Stage.WHOLE)
    if isinstance(arguments, str):
        return Fail(
            Reason(CallReason.ENCODED_TWICE, arguments=call.arguments[:200]), Stage.PARSED, OTHER_TOOL_PARSER
        )
    return _schema_flaw(arguments, schemas[call.name], written)


def _schema_flaw(arguments: Any, schema: Mapping[str, object], written: str) -> Fail | Inconclusive | None:
    from jsonschema import Draft202012Validator

    error = next(Draft202012Validator(schema).iter_errors(arguments), None)
    if error is None:
        return None
    if error.validator == "type" and isinstance(error.instance, str) and _is_json(error.instance):
        return Fail(Reason(CallReason.TEXT_FOR_VALUE, message=error.message), Stage.PARSED, OTHER_TOOL_PARSER)
    required = error.validator_value if error.validator == "required" else ()
    lost = [key for key in required if key not in error.instance and gives_argument(written, key)]
    if lost:
        return Fail(Reason(CallReason.ARGUMENT_LOST, lost=lost[0]), Stage.PARSED, OTHER_TOOL_PARSER)
    return Inconclusive(Reason(CallReason.UNFIT, problem=error.message), Stage.DRAWN)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
