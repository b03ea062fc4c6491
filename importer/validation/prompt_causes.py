"""What explains a prompt with other tokens than the template's text: how the engine was started, or several
servers behind one address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.chat_template.render import now
from importer.engines.arguments import grouped
from importer.reasons import Reason, ReasonKind
from importer.validation.context import Context
from importer.validation.errors import TemplateRefusedError
from importer.validation.fact import Rung
from importer.validation.outcome import Fail
from importer.validation.prompts import Prompt
from importer.validation.remedy import Remedy
from importer.validation.tokenized import tokens_of


class PromptCause(ReasonKind):
    """What gives a prompt other tokens."""

    SWITCHED = (
        "switched",
        "the prompt is that of the template with {switches}, which the document does not set",
    )
    OTHER_TEMPLATE = "other-template", "the prompt is what {argument} of the start renders: {text!r}"
    SERVERS_DIFFER = (
        "servers-differ",
        "{trials} equal requests have prompts of {counts} tokens: servers that differ answer",
    )


TIMES = 5  # equal requests: one server of three shows among them
Counted = tuple[Prompt, int | None]  # a conversation, and the engine's count of its tokens


def text_now(ctx: Context, prompt: Prompt, template: str | None = None) -> str | None:
    """Return the text of a prompt, rendered now; templates may write the date."""
    try:
        return None if ctx.render is None else ctx.render.at(prompt, now(), template=template)
    except TemplateRefusedError:
        return None


def of_start(ctx: Context, counted: Sequence[Counted]) -> Fail | None:
    """Return the fault of a start with variables or a template of its own, if that explains every count."""
    return _switched(ctx, counted) or _other_template(ctx, counted)


def of_servers(ctx: Context, prompt: Prompt) -> Fail | None:
    """Return the fault of servers behind one address, of which some read an equal request otherwise.

    The prompt was sent before: some servers do not count what their cache has of it.
    """
    counts = {ctx.ask(prompt).usage.prompt for _ in range(TIMES)} - {None}
    if len(counts) < 2:
        return None
    shown = tuple(sorted(filter(None, counts)))
    reason = Reason(PromptCause.SERVERS_DIFFER, rung=Rung.GATEWAY, counts=shown, trials=TIMES)
    return Fail(reason, "engine", Reason(Remedy.SERVERS_ALIKE), trials=TIMES, agreed=1)


def _switched(ctx: Context, counted: Sequence[Counted]) -> Fail | None:
    thinking = None if ctx.render is None or ctx.render.analysis is None else ctx.render.analysis.thinking
    for switches in () if thinking is None else (thinking.off, thinking.on):
        prompts = [replace(one, switches={**(switches or {}), **one.switches}) for one, _ in counted]
        if switches and _explains(ctx, [text_now(ctx, prompt) for prompt in prompts], counted):
            reason = Reason(PromptCause.SWITCHED, rung=Rung.TEMPLATE, switches=dict(switches))
            argument = next((flag for flag, text in _arguments(ctx) if _sets(text, switches)), None)
            remedy = Reason(Remedy.START_WITH_VARIABLES) if argument is None else _without(argument)
            return Fail(reason, "configuration", remedy, trials=len(counted))
    return None


def _other_template(ctx: Context, counted: Sequence[Counted]) -> Fail | None:
    for flag, text in _arguments(ctx):
        texts = [text_now(ctx, one, text) for one, _ in counted] if "template" in flag else []
        if texts and _explains(ctx, texts, counted):
            shown = " ".join(text.split())[:80]
            reason = Reason(PromptCause.OTHER_TEMPLATE, rung=Rung.TEMPLATE, argument=flag, text=shown)
            return Fail(reason, "configuration", _without(flag), trials=len(counted))
    return None


def _explains(ctx: Context, texts: Sequence[str | None], counted: Sequence[Counted]) -> bool:
    """Return whether each text has as many tokens as the engine counts."""
    if any(text is None for text in texts):
        return False
    tokens = tokens_of(ctx, tuple(text or "" for text in texts)) or ()
    return [len(ids) for ids in tokens] == [count for _, count in counted]


def _arguments(ctx: Context) -> Iterator[tuple[str, str]]:
    """Yield the arguments of the engine's start, each with its last value."""
    return ((flag, values[-1]) for flag, values in grouped(list(ctx.argv)) if values)


def _sets(text: str, switches: Mapping[str, Any]) -> bool:
    """Return whether an argument is an object of JSON with one of the variables at its value."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and any(data.get(name) == value for name, value in switches.items())


def _without(argument: str) -> Reason:
    return Reason(Remedy.TAKE_OUT_ARGUMENT, argument=argument)
