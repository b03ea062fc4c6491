"""Whether weights that call no tool do so where the same tools are listed in another form of JSON.

A template may render every word of a tool in a form that the weights never saw: with other spaces, without
its envelope, as Python writes it. No text shows that; the weights are asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from importer.validation.alternate_turn_formats import greedily
from importer.validation.context import Context
from importer.validation.prompts import ALARMS, TRIP, WEATHER, Prompt, Tool
from importer.validation.trace import read

CALL = 192  # tokens
TRIED = 16  # forms
ASKED = (WEATHER, TRIP, ALARMS)  # all have to be called in one form

Write = Callable[[Any], str]
Envelope = Callable[[Tool], Any]
Form = Callable[[Sequence[Tool]], str]
# As published templates write JSON; the last one is what a template writes without a filter.
WRITERS: tuple[Write, ...] = (
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=False, indent=4),
    lambda value: json.dumps(value, ensure_ascii=False, indent=2),
    lambda value: json.dumps(value, ensure_ascii=False, sort_keys=True),
    str,
)
# A tool as a request has it, and its function alone; where a template writes the rest in words, its schema.
ENVELOPES: tuple[Envelope, ...] = (lambda tool: tool, lambda tool: tool["function"])


def _schema(tool: Tool) -> Any:
    return tool["function"]["parameters"]


def calling(ctx: Context) -> str | None:
    """Return a tool in the first form in which the weights call it; ``None`` where there is none.

    ``None`` also where they call to the template's own text, or its form of the tools is not known.
    """
    if ctx.promise.lacks("completions") or ctx.offline is None:
        return None
    texts = [ctx.rendered(prompt) for prompt in ASKED]
    asked = [(text, prompt) for text, prompt in zip(texts, ASKED, strict=True) if text is not None]
    known = _group(asked) if len(asked) == len(ASKED) else None
    if known is None or all(_calls(ctx, text, p) for text, p in asked):
        return None
    own, group = known
    tried = {tuple(text.replace(own(p.tools), form(p.tools)) for text, p in asked): form for form in group}
    tried.pop(tuple(text for text, _ in asked), None)
    for told, form in islice(tried.items(), TRIED):
        if all(_calls(ctx, text, p) for text, p in zip(told, ASKED, strict=True)):
            return form(WEATHER.tools)
    return None


def _as_list(envelope: Envelope, write: Write, tools: Sequence[Tool]) -> str:
    return write([envelope(tool) for tool in tools])


def _in_lines(envelope: Envelope, write: Write, tools: Sequence[Tool]) -> str:
    return "\n".join(write(envelope(tool)) for tool in tools)


# Several tools as a list, or one behind another; forms of one group take each other's place.
TOOLS: tuple[Form, ...] = tuple(
    partial(write_all, envelope, write)
    for envelope in ENVELOPES
    for write in WRITERS
    for write_all in (_as_list, _in_lines)
)
SCHEMAS: tuple[Form, ...] = tuple(partial(_in_lines, _schema, write) for write in WRITERS)


def _group(asked: Sequence[tuple[str, Prompt]]) -> tuple[Form, Sequence[Form]] | None:
    """Return the form in which all texts have their tools, and the group that it is of."""
    for group in (TOOLS, SCHEMAS):
        for form in group:
            if all(form(prompt.tools) in text for text, prompt in asked):
                return form, group
    return None


def _calls(ctx: Context, text: str, prompt: Prompt) -> bool:
    """Return whether the weights write the prompt's call behind a text, and the parsers in use read it."""
    reading = read(ctx, text, greedily(ctx, text, CALL), prompt)
    offered = {str(tool["function"]["name"]) for tool in prompt.tools}
    return reading is not None and any(
        call.name in offered and _as_asked(call.arguments, prompt) for call in reading.calls
    )


def _as_asked(arguments: str, prompt: Prompt) -> bool:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return not prompt.expects or any(word in arguments.casefold() for word in prompt.expects)
