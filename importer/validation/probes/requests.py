"""The table of requests whose answers a contract fixes: a call as it is demanded, or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from jsonschema import Draft202012Validator

from importer.decisions.frontends import HF
from importer.reasons import Reason, ReasonKind
from importer.validation.calls import judge_call
from importer.validation.context import Context, ask_both_ways, tally
from importer.validation.errors import AnswerFailure, ReplyError, RequestRefused, TimedOut
from importer.validation.expectations import Expectations, no_chat, no_tools
from importer.validation.outcome import Fail, Inconclusive, Outcome, Stage, differs, holding, not_done, note
from importer.validation.probe import Rests, probe
from importer.validation.probes.sampling import heed
from importer.validation.probes.server import WITHIN
from importer.validation.prompts import (
    GREETING,
    GREETING_WITH_TOOL,
    TWO_CITIES,
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_TWO_TOOLS,
    Prompt,
    function,
    user,
)
from importer.validation.reply import NO_JSON, Reply, loaded
from importer.validation.tool_markup import unended

Judge = Callable[[Reply, Prompt], Outcome]
REQUIRED = replace(GREETING_WITH_TOOL, name="required", extra={"tool_choice": "required"})


def _named(name: str) -> dict[str, object]:
    return {"tool_choice": {"type": "function", "function": {"name": name}}}


NAMED = replace(WEATHER_TWO_TOOLS, name="named", extra=_named("get_time"))
FEWER = 5  # calls of a slow engine
MARK = {"const": "k7q2"}  # no model writes it by itself


def _object(**properties: object) -> dict[str, object]:
    return {
        "type": "object", "properties": properties, "required": [*properties], "additionalProperties": False,
    }  # fmt: skip


def _bound(name: str, schema: Mapping[str, object]) -> Prompt:
    """Return a request for a call whose arguments a strict schema binds: each of its values ends soon."""
    tool: Any = function("record", "Record values.", {})
    tool = {**tool, "function": {**tool["function"], "parameters": schema, "strict": True}}
    return Prompt(name, (user("Record the values."),), (tool,), extra=_named("record"))


BOUND = (
    _bound("values", _object(
        mark=MARK, unit={"type": "string", "enum": ["zorn", "quelb"]},
        amount={"type": "integer", "minimum": 4711, "maximum": 4715},
        code={"type": "string", "pattern": "^[xz]{3}$"},
    )),
    _bound("shapes", _object(
        flags={"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2},
        inner=_object(mark=MARK), either={"anyOf": [{"type": "null"}, {"const": 77}]},
    )),
    _bound("references", {
        **_object(point={"$ref": "#/$defs/point"}),
        "$defs": {"point": _object(x={"type": "integer", "minimum": 41, "maximum": 43})},
    }),
)  # fmt: skip


def judge_forced(reply: Reply, prompt: Prompt, name: str | None) -> Outcome:
    """Judge an answer that must be a call, of the tool ``name`` if there is one."""
    demand = "a call was required" if name is None else f"{name} was named"
    if not reply.tool_calls:
        if reply.finish_reason == "length":
            return not_done(f"{demand}, and the answer came to the limit of tokens")
        return differs(f"calls where {demand}", 0, "one or more")
    called = reply.tool_calls[0].name
    if name is not None and called != name:
        return differs("the tool that was called", called, name)
    # Engines end a forced call with either finish_reason, and its arguments are the model's own.
    outcome = judge_call(replace(reply, finish_reason="tool_calls"), prompt)
    return outcome if isinstance(outcome, Fail) else holding(f"{demand}: {called}")


def judge_most(reply: Reply, _prompt: Prompt, most: int, option: str) -> Outcome:
    """Judge an answer that may call so often at ``most``, by an option of its request."""
    if (calls := len(reply.tool_calls)) > most:
        return differs(f"calls with {option}", calls, f"{most} at most", remedy=heed(option))
    return holding(f"{option} is heeded")


def judge_bound(reply: Reply, prompt: Prompt) -> Outcome:
    """Judge the arguments of a call that a strict schema binds.

    What is no call is the model's: it may think, or write white space, without end, and other rows ask for
    calls that it knows. Formats in tags know no types.
    """
    called = [(call.name, loaded(call.arguments, NO_JSON)) for call in reply.tool_calls]
    if not called or any(value is NO_JSON for _, value in called) or reply.finish_reason == "length":
        return not_done("no whole call of a tool that the model does not know")
    name, arguments = called[0]
    if name != "record":
        return differs("the tool that was called", name, "record")
    schema = Draft202012Validator(prompt.tools[0]["function"]["parameters"])
    problem = next(schema.iter_errors(arguments), None)
    if problem is None:
        return holding("the arguments fit a strict schema")
    if schema.is_valid(_typed(arguments)):
        return not_done("values of arguments come as text", problem.message)
    return differs(
        "arguments that do not fit a strict schema", problem.message, None, Stage.SAMPLED, heed("strict")
    )


def _typed(value: object) -> object:
    """Return a value with its texts as the JSON that they are, without white space at their edges."""
    if isinstance(value, dict):
        return {key: _typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [*map(_typed, value)]
    return loaded(value, value.strip()) if isinstance(value, str) else value


CALLS: tuple[tuple[Prompt, Judge], ...] = (
    (REQUIRED, partial(judge_forced, name=None)),
    (NAMED, partial(judge_forced, name="get_time")),
    (
        replace(WEATHER, name="forbidden", extra={"tool_choice": "none"}),
        partial(judge_most, most=0, option="tool_choice"),
    ),
    (
        replace(TWO_CITIES, name="one at a time", extra={"parallel_tool_calls": False}),
        partial(judge_most, most=1, option="parallel_tool_calls"),
    ),
    *((prompt, judge_bound) for prompt in BOUND),
)


class ToolChoiceReason(ReasonKind):
    """Why ``tool-choice`` does not apply."""

    PARSER_REJECTS = "the parser {parser} rejects a required or named tool choice"


def needs_tool_choice(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no tools, or an engine or a parser without the field."""
    rejected = Reason(ToolChoiceReason.PARSER_REJECTS, parser=HF) if promise.tool_parser == HF else None
    return no_tools(promise) or promise.lacks("tool-choice") or rejected


@probe(
    "tool-choice",
    "A named tool was ignored, a strict schema bound nothing, two calls came for one: all with HTTP 200.",
    needs=needs_tool_choice,
    ability="required",
)
def tool_choice(ctx: Context) -> Outcome:
    """Judge each call of the table, whole and streamed; an unknown server need not bind arguments.

    A slow engine is asked for the first ones, whole.
    """
    slow = ctx.promise.slow

    def judged(prompt: Prompt, judge: Judge) -> Outcome:
        def of_prompt(reply: Reply) -> Outcome:
            return judge(reply, prompt)

        try:
            both = of_prompt(ctx.first(prompt)) if slow else ask_both_ways(ctx, prompt, of_prompt)
        except RequestRefused as refused:
            if prompt not in BOUND:
                raise
            return ctx.refused(refused, prompt)  # some grammars lack a keyword
        outcome = unended(both, prompt, ctx)
        own = ctx.promise.offers is None and outcome.remedy == heed("strict")
        return Inconclusive(outcome.reason, Stage.DRAWN, trials=outcome.trials) if own else outcome

    return tally({prompt.name: judged(prompt, judge) for prompt, judge in CALLS[: FEWER if slow else None]})


def _message(**fields: object) -> dict[str, object]:
    return {"messages": [fields]}


_BROKEN_CALL: Any = {**WEATHER_ANSWERED.messages[1]}
_BROKEN_CALL["tool_calls"] = [
    {**_BROKEN_CALL["tool_calls"][0], "function": {"name": "get_weather", "arguments": '{"location": '}}
]
# Fields in place of a greeting's.
MALFORMED: Mapping[str, Mapping[str, object]] = {
    "no messages": {"messages": None},
    "messages as a text": {"messages": "Say hello."},
    "a message without a role": _message(content="Say hello."),
    "an unknown role": _message(role="narrator", content="Say hello."),
    "a number as content": _message(role="user", content=7),
    "an unknown kind of content": _message(role="user", content=[{"type": "hologram"}]),
    "max_tokens below zero": {"max_tokens": -1},
    "max_tokens as a word": {"max_tokens": "many"},
    "temperature as a word": {"temperature": "hot"},
    "tools as an object": {"tools": {}},
    "a tool without a name": {"tools": [{"type": "function", "function": {"parameters": {}}}]},
    "a call whose arguments are not JSON": {
        "messages": [WEATHER.messages[0], _BROKEN_CALL, WEATHER_ANSWERED.messages[2]], "tools": WEATHER.tools,
    },
    "an unknown tool by name": {"tools": WEATHER.tools, **_named("get_tide")},
    "an unknown response_format": {"response_format": {"type": "poem"}},
    "a number as a stop string": {"stop": 5},
}  # fmt: skip
# Features without which servers do not read such a field, or end over it.
NEEDS = {
    "an unknown tool by name": "tool-choice",
    "an unknown response_format": "structured",
    "a number as a stop string": "stop",
}
BREAKS = 2  # requests without a refusal, until no further one is sent: each may take ``WITHIN``


@probe(
    "malformed-requests",
    "A request without sense ended a server, hung, or was the server's own error: clients sent it again.",
    needs=no_chat,
    alone=True,  # a server that ends over one leaves the verdicts of all others
    rests_on=Rests.REQUESTS,
)
def malformed_requests(ctx: Context) -> Outcome:
    """Send each malformed request, then a greeting; an answer to nonsense is a note."""
    unread = {name for name, feature in NEEDS.items() if ctx.promise.unsure(feature) is not None}
    came: dict[str, bool | Reason] = {}
    for name in (one for one in MALFORMED if one not in unread):
        came[name] = _refused(ctx, name)
        if sum(isinstance(one, Reason) for one in came.values()) == BREAKS:
            break
    ctx.ask(GREETING, max_tokens=1)
    for name, broken in came.items():
        if isinstance(broken, Reason) and isinstance(_refused(ctx, name), Reason):
            return differs(f"a malformed request, {name}", broken, "a refusal", trials=len(came))
    taken = ", ".join(name for name, refused in came.items() if refused is False)
    notes = (note(f"answered as if well formed: {taken}"),) if taken else ()
    return replace(holding("malformed requests are refused, or answered", len(came)), notes=notes)


def _refused(ctx: Context, name: str) -> bool | Reason:
    """Return whether a malformed request is refused; how the server breaks over it, where it does neither."""
    hasty = replace(ctx.client, begins_within=WITHIN)
    body = {"model": ctx.model, "messages": list(GREETING.messages), "max_tokens": 1, **MALFORMED[name]}
    try:
        hasty.chat({key: value for key, value in body.items() if value is not None}, ctx.log)
    except RequestRefused as refused:
        if refused.limited:
            raise
        return refused.reason if refused.broke else True
    except TimedOut as error:
        return error.reason
    except ReplyError as error:  # a failure with HTTP 200, or an odd answer
        return error.reason if error.outcome().gives(AnswerFailure.REPORTS_ERROR) else False
    return False
