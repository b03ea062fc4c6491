"""Probes of tool calls: made, read, streamed, refused, answered and remembered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from importer.hub.snapshot import mapping
from importer.reasons import Reason
from importer.validation.calls import both_ways, first_call, judge_call, judge_unread, plain
from importer.validation.context import Context, tally, together
from importer.validation.diagnosis import (
    CALLS,
    RESULTS,
    ROUND,
    TOOLS,
    endless,
    left_out,
    miswritten,
    swallowed,
    swallowing,
    unseen,
)
from importer.validation.errors import ExchangeError
from importer.validation.expectations import no_tools
from importer.validation.outcome import (
    Fail,
    NotApplicable,
    Outcome,
    Pass,
    Stage,
    differs,
    holding,
    named,
    needless,
    not_done,
    quoted,
)
from importer.validation.probe import probe
from importer.validation.probes.chat import answered, judge_plain_chat
from importer.validation.prompts import (
    ALARMS,
    BOTH_ANSWERED,
    GREETING_WITH_TOOL,
    NOT_OFFERED,
    ROUNDS,
    TRIP,
    TRIP_TOOL,
    TWO_CITIES,
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_TWO_TOOLS,
    Call,
    CalledFunction,
    Message,
    Prompt,
)
from importer.validation.remedy import OTHER_TOOL_PARSER, Need, Remedy
from importer.validation.reply import Reply, ToolCall
from importer.validation.tool_markup import control_token, outside


@probe(
    "tool-call",
    "Parsers for another format let calls through as text, lost the second of two, or put numbers in quotes.",
    needs=no_tools,
    ability="tools",
)
def tool_call(ctx: Context) -> Outcome:
    """Judge calls, whole and streamed: one, two at once, later ones, and arguments of every type.

    Where the first question shows a fault, or no call, no other question is asked.
    """
    judge = partial(judge_call, prompt=WEATHER)
    one = both_ways(ctx, WEATHER, judge)
    seen = ctx.look(WEATHER) if isinstance(one, Pass) else None
    if seen is not None and seen.logprobs:  # a call beside its own tokens
        closer = ctx.noted(WEATHER, judge, judge(seen), reply=seen)
        one = closer if isinstance(closer, Fail) else one
    if not isinstance(one, Pass):
        return one
    parts = {"two calls": _two_calls, "later turns": _later_turns, "arguments": _types}
    return tally({"one call": one, **{name: part(ctx) for name, part in parts.items()}})


def _two_calls(ctx: Context) -> Outcome:
    """Request two calls at once; where one arrives, judge the text of the model."""
    outcome = both_ways(ctx, TWO_CITIES, judge_parallel_calls)
    if not isinstance(outcome, NotApplicable):
        return outcome
    seen = ctx.look(TWO_CITIES)
    return (
        outcome if seen is None else ctx.noted(TWO_CITIES, judge_parallel_calls, judge_parallel_calls(seen))
    )


def judge_parallel_calls(reply: Reply) -> Outcome:
    """Judge an answer to a question that needs two calls."""
    one = judge_call(reply, TWO_CITIES)
    if not isinstance(one, Pass):
        return one
    calls, cities = reply.tool_calls, TWO_CITIES.expects
    if len({c.id for c in calls}) < len(calls) or len({c.index for c in calls}) < len(calls):
        return differs(f"ids and indexes of {len(calls)} calls", "shared", "one each")
    called = [city for city in cities if any(city in plain(c.arguments) for c in calls)]
    if len(called) == len(cities):
        return holding(f"{len(calls)} calls: {', '.join(called)}")
    name = calls[0].name
    if reply.written.count(name) > len(calls) and all(city in reply.written.casefold() for city in cities):
        lost = next(city for city in cities if city not in called)
        return differs(
            f"the call for {lost} that the model wrote", "left out", None, Stage.PARSED, OTHER_TOOL_PARSER
        )
    return needless("the model calls one tool at a time")


def _types(ctx: Context) -> Outcome:
    """Judge calls without arguments, and with some of every type; a small model may do as it was trained."""
    if (lacking := ctx.promise.lacks("tools-as-sent")) is not None:
        return NotApplicable(lacking)
    none = both_ways(ctx, ALARMS, partial(judge_call, prompt=ALARMS))
    return tally({"no arguments": none, "types": _typed(ctx)})


def _typed(ctx: Context) -> Outcome:
    """Judge a call by its tool's schema; it accepts 2.0 for a whole number."""
    outcome = both_ways(ctx, TRIP, partial(judge_call, prompt=TRIP))
    if not isinstance(outcome, Pass):
        return outcome
    calls = [call for stream in (False, True) for call in ctx.first(TRIP, stream=stream).tool_calls]
    pointed = [number for call in calls for number in whole_with_point(call.arguments)]
    seen = ctx.look(TRIP) if pointed else None
    return (judge_pointed(pointed, seen.written) if seen is not None else None) or outcome


def whole_with_point(arguments: str) -> list[str]:
    """Return whole numbers spelled with a point or an exponent, where the tool has an integer."""

    class Spelled(str):
        """A number with a point or an exponent."""

    def spellings(value: Any, schema: Mapping[str, object]) -> Iterator[str]:
        if isinstance(value, Spelled) and schema.get("type") == "integer" and float(value).is_integer():
            yield str(value)
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield from spellings(inner, mapping(mapping(schema.get("properties")).get(key)))

    try:
        return list(
            spellings(json.loads(arguments, parse_float=Spelled), TRIP_TOOL["function"]["parameters"])
        )
    except (ValueError, RecursionError):
        return []


def judge_pointed(pointed: Sequence[str], written: str) -> Fail | None:
    """Return the fault of whole numbers with a point; ``None`` if the model wrote them so."""
    number = next((n for n in pointed if n not in written), None)
    if number is None or not written.strip():
        return None
    return differs("a whole number", number, "as the model writes it", trials=2)


def _not_offered(ctx: Context) -> Outcome:
    """Send a question that no tool on offer answers."""
    return ctx.noted(
        NOT_OFFERED, judge_invented_tool, judge_invented_tool(ctx.look(NOT_OFFERED) or ctx.first(NOT_OFFERED))
    )


def judge_invented_tool(reply: Reply) -> Outcome:
    """Judge an answer to a question that no tool on offer fits."""
    offered = {tool["function"]["name"] for tool in NOT_OFFERED.tools}
    made_up = [call.name for call in reply.tool_calls if call.name not in offered]
    if not made_up:
        return holding("no call of a tool that was not offered")
    if reply.written and made_up[0] not in reply.written:
        return differs("the tool that was called", made_up[0], "one that the model wrote")
    remedy = Reason(Remedy.REFUSE_NAMES)
    return differs("the tool that was called", made_up[0], "one on offer", Stage.DRAWN, remedy)


@probe(
    "tool-result-turn",
    "Templates dropped the result in silence, or refused the id that the engine had made up for the call.",
    needs=no_tools,
    ability="results",
)
def tool_result_turn(ctx: Context) -> Outcome:
    """Send the result; judge its place in the prompt, and the answers under our id and the call's own."""
    lost = unseen(ctx, RESULTS) or judge_rendered(ctx.rendered(BOTH_ANSWERED))
    told = lost or ctx.judged(WEATHER_ANSWERED, judge_tool_result_turn)
    if not isinstance(told, Pass):
        return told
    moved, call = _in_another_order(ctx), first_call(ctx)
    own = call if isinstance(call, NotApplicable) else ctx.judged(id_answered(call), judge_tool_result_turn)
    return moved or tally({"result": told, "own id": own})


def _in_another_order(ctx: Context) -> Fail | None:
    """Return the fault of two results in another order than the template renders them; confirmed by a second
    try.
    """
    failure = None
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"max_tokens": ctx.promise.limit(BOTH_ANSWERED.tokens, tools=True)},
    )
    for sent in ways:
        alone = ctx.raw(BOTH_ANSWERED, **sent)
        if alone is None:
            return None
        try:
            answer = ctx.ask(BOTH_ANSWERED, **sent).content
        except ExchangeError:
            return None
        failure = judge_order(answer, outside(alone))
        if failure is None:
            return None
    return failure


def judge_order(answer: str, alone: str) -> Fail | None:
    """Judge an answer over two results, beside the completion of the same rendered prompt."""
    words, cities = BOTH_ANSWERED.expects, TWO_CITIES.expects
    served, completed = (_order(text, words) for text in (answer, alone))
    if (
        len(served) != len(completed)
        or served == completed
        or _order(answer, cities) != _order(alone, cities)
    ):
        return None
    return differs("the first of two results", served[0], completed[0], trials=2)


def _order(text: str, words: Sequence[str]) -> list[str]:
    """Return those of the words that ``text`` holds, in its order."""
    plain = text.casefold()
    return sorted((word for word in words if word in plain), key=plain.find)


def judge_rendered(text: str | None) -> Fail | None:
    """Judge two results as the template renders them; ``None`` without a fault or a rendered prompt."""
    lost = [word for word in BOTH_ANSWERED.expects if text and word not in text]
    if not lost or len(lost) == len(BOTH_ANSWERED.expects):
        return None
    return miswritten("results of two calls in the prompt", 1, 2, Need.RENDER_EVERY_RESULT)


def judge_tool_result_turn(reply: Reply) -> Outcome:
    """Judge an answer after the result of the tool; a result that a call repeats is no answer."""
    text = reply.content.strip()
    if reply.tool_calls:
        return not_done("the model calls the tool again")
    if (unread := judge_unread(reply, WEATHER_ANSWERED)) is not None:
        return unread
    if any(word in text.casefold() for word in WEATHER_ANSWERED.expects):
        return holding(f"answered {text[:80]!r}")
    return (
        swallowing(reply)
        if swallowed(reply)
        else not_done("the answer does not use the result", quoted(text))
    )


def id_answered(call: ToolCall) -> Prompt:
    """Return the weather question after ``call`` and its result, both under the engine's id."""
    function: CalledFunction = {"name": call.name, "arguments": call.arguments}
    tool_call: Call = {"id": call.id, "type": "function", "function": function}
    result = json.dumps({"temperature": -3, "condition": "snowy"})
    turns: tuple[Message, ...] = (
        {"role": "assistant", "content": "", "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result},
    )
    return Prompt("own-id-answered", (*WEATHER.messages, *turns), WEATHER.tools, ("snow", "-3"))


# Forms of an argument other than the JSON that models are trained on.
FORMS = {
    "text inside text": re.compile(r"""\\["']location\\["']\s*:\s*\\["']Paris"""),
    "a Python dictionary": re.compile(r"""'location'\s*:\s*'Paris"""),
}
# A turn with calls has no text: clients send null there.
WITH_NULL = replace(
    WEATHER_ANSWERED,
    name="weather-answered-null",
    messages=tuple({**m, "content": None} if "tool_calls" in m else m for m in WEATHER_ANSWERED.messages),
)


def _calls_kept(ctx: Context) -> Outcome | None:
    """Compare prompt tokens after a short call and a longer one; then judge how the template writes it."""
    counts = [_counted(ctx, prompt) for prompt in CALLS.prompts]
    if None in counts:
        return needless("the engine does not count the prompt's tokens")
    if counts[0] == counts[1]:
        return left_out(ctx, CALLS, counts[0])
    null = _counted(ctx, WITH_NULL)
    if null is not None and null != counts[0]:
        return judge_null(null, counts[0] or 0)
    seen, rendered = ctx.look(WEATHER), ctx.rendered(WEATHER_ANSWERED)
    return judge_call_history(rendered or "", seen.written if seen is not None else "")


def _counted(ctx: Context, prompt: Prompt) -> int | None:
    return ctx.first(replace(prompt, extra={"max_tokens": 1}, name=f"{prompt.name}-counted")).usage.prompt


def judge_null(null: int, empty: int) -> Fail | None:
    """Judge prompt tokens where the turn of a call has null as its text, and where it has an empty one."""
    if null == empty:
        return None
    what = "prompt_tokens where a call's content is null"
    return miswritten(what, null, empty, Need.WRITE_NULL_AS_NOTHING, trials=2)


def judge_call_history(rendered: str, written: str) -> Fail | None:
    """Judge a conversation with a call as the template writes it, beside a call of the model."""
    for name, form in FORMS.items():
        match = form.search(rendered)
        if match and written and not form.search(written):
            what, own = f"arguments of an earlier call, as {name}", "as the model writes them"
            return miswritten(what, quoted(match.group()), own, Need.WRITE_ARGUMENTS)
    return None


TOOLS_IN_PROMPT_LATER = (replace(ROUNDS[-1], name="round-one-tool", tools=ROUNDS[-1].tools[:1]), ROUNDS[-1])


def tools_in_prompt(ctx: Context) -> Outcome:
    """Compare prompts with one tool and with two, then those with a short call and with a longer one."""
    later = judge_later(
        *(ctx.rendered(prompt) for prompt in (WEATHER, WEATHER_TWO_TOOLS, *TOOLS_IN_PROMPT_LATER))
    )
    return unseen(ctx, TOOLS) or together({"tools": later, "calls": _calls_kept(ctx)})


def judge_later(one: str | None, two: str | None, later: str | None, later_two: str | None) -> Fail | None:
    """Judge prompts with one tool and with two: of a first question, and of one behind calls and their
    results.
    """
    if None in (one, two, later, later_two) or one == two or later != later_two:
        return None
    what = "a second tool, once one has answered"
    return miswritten(what, "left out of the prompt", None, Need.SHOW_TOOLS)


def _later_turns(ctx: Context) -> Outcome:
    """Judge one conversation at three lengths; each must reach the prompt and end in a call."""
    lost = unseen(ctx, ROUND)
    if lost is not None:
        return lost
    for number, prompt in enumerate(ROUNDS, 2):
        outcome = ctx.judged(prompt, partial(judge_call, prompt=prompt))
        if not isinstance(outcome, Pass):
            return named(outcome, f"turn {number}")
    return replace(outcome, trials=len(ROUNDS), agreed=len(ROUNDS))


@probe(
    "no-tool-needed",
    "Parsers that see calls everywhere, and tools that nobody offered, are of no use in a conversation.",
    needs=no_tools,
    ability="restraint",
)
def no_tool_needed(ctx: Context) -> Outcome:
    """Send a greeting with a tool on offer, and a question for a tool that is not."""
    greeted = answered(ctx, GREETING_WITH_TOOL, judge_no_tool_needed)
    return tally({"greeting": greeted, "tool not offered": _not_offered(ctx)})


def judge_no_tool_needed(reply: Reply, markers: tuple[str, ...] = ()) -> Outcome:
    """Judge an answer to a greeting that needs no tool."""
    if reply.tool_calls and control_token(reply.content, markers):
        return endless(reply, markers)  # text behind a missed end is no answer
    if reply.tool_calls:
        return not_done("the model calls a tool to say hello", quoted(reply.tool_calls[0].name))
    return judge_unread(reply, GREETING_WITH_TOOL) or judge_plain_chat(reply, markers)
