"""Prompts of the served model, rendered with its chat template in the sandbox.

Faults of streams: what is changed in them, and at which length they are broken off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any

from importer.chat_template import find
from importer.chat_template.render import Renderer, RenderJob, RenderRefused
from importer.chat_template.study import STUDY, Served, TemplateAnalysis
from importer.chat_template.vocabulary import read_vocabulary
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.sandbox import OverLimit
from importer.sandbox.task import Closing
from importer.validation import mutations, proof_check
from importer.validation.context import Context
from importer.validation.diagnosis import unread
from importer.validation.errors import (
    ExchangeError,
    ReplyError,
    ServerUnreachable,
    StreamCut,
    TemplateRefusedError,
)
from importer.validation.expectations import CommonReason
from importer.validation.outcome import Fail, Outcome, failing, named
from importer.validation.prompts import Message, Prompt
from importer.validation.remedy import (
    NO_REASONING_PARSER,
    OTHER_REASONING_PARSER,
    OTHER_TOOL_PARSER,
    WHOLE_ANSWERS,
    Remedy,
)
from importer.validation.tool_markup import looks_like_call, thinks


class PromptRendering(Closing):
    """A renderer of prompts in the form that an engine tokenises: with tools, switches, arguments as
    objects.

    ``variables`` are those of the engine's start, ``template`` replaces the one of the snapshot. Safe to use
    from several threads; each prompt is rendered once. Templates get a fixed date.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        variables: Mapping[str, Any] | None = None,
        template: find.Template | None = None,
    ) -> None:
        """Read template and vocabulary; raises RepositoryError for a template too large or not JSON."""
        self._template = template or find.find(snapshot)
        self.files = snapshot.settings
        words = read_vocabulary(snapshot)
        self._vocabulary = words
        self._names, self._stops = words.variables, words.stops
        claimed = snapshot.json("tokenizer_config.json").get("tool_parser_type")
        self.claimed = claimed if isinstance(claimed, str) else None
        self.others = () if template or self._template is None else find.others(snapshot, self._template)
        self._variables = dict(variables or {})
        self._renderer, self._lock = Renderer(), Lock()
        self._known: dict[str, str | TemplateRefusedError] = {}

    @cached_property
    def analysis(self) -> TemplateAnalysis | None:
        """Return the analysis of the template, as a proof has it.

        ``None`` without a template, or for one too costly to analyse.
        """
        if self._template is None:
            return None
        served = Served(self._template, self._vocabulary)
        answer = self._renderer.sandbox.call(STUDY, served, "the chat template")
        return None if isinstance(answer, OverLimit) else answer

    @property
    def bos(self) -> str:
        """Return the token that begins a text, where the repository names one."""
        return str(self._names.get("bos_token") or "")

    @property
    def stops(self) -> tuple[str, ...]:
        """Return the tokens that end an answer, as the repository names them."""
        return self._stops

    @property
    def digest(self) -> str:
        """Return the digest of the template; empty where there is none."""
        return self._template.digest if self._template else ""

    @property
    def place(self) -> str:
        """Return the template's file where several stand beside one another; else empty."""
        found = self._template
        return found.source if found is not None and len(found.all) > 1 else ""

    def knows(self, variable: str) -> bool:
        """Return whether the variable's name stands in the template."""
        text = "" if self._template is None else self._template.text + self._template.plain
        return re.search(rf"(?<!\w){re.escape(variable)}(?!\w)", text) is not None

    def __call__(self, prompt: Prompt) -> str | None:
        """Return the text of the prompt; raises TemplateRefusedError with the message of the template."""
        return self.at(prompt, 0)

    def at(self, prompt: Prompt, later: float, *, template: str | None = None) -> str | None:
        """Return the text of the prompt, rendered ``later`` seconds after the fixed time.

        ``template``  in place of the model's own.
        """
        if self._template is None:
            return None
        inputs = [prompt.messages, prompt.tools, prompt.switches, prompt.begins, later, template]
        key = json.dumps(inputs, default=str)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._render(template or self._text(prompt), prompt, later)
            known = self._known[key]
        if isinstance(known, TemplateRefusedError):
            raise known
        return known

    def _text(self, prompt: Prompt) -> str:
        """Return the template for a prompt: repositories may have one for requests with tools."""
        own = self._template
        return "" if own is None else own.text if prompt.tools else own.plain or own.text

    def _render(self, text: str, prompt: Prompt, later: float) -> str | TemplateRefusedError:
        job = RenderJob(
            [_with_objects(m) for m in prompt.messages],
            list(prompt.tools) or None,
            add_generation_prompt=prompt.begins,
            kwargs={**self._variables, **prompt.switches},
            later=later,
        )
        (result,) = self._renderer.render(text, [job], self._names).results
        if isinstance(result, RenderRefused):
            return TemplateRefusedError(result.reason, broke=result.broke or result.kind == "syntax")
        return result.text

    def close(self) -> None:
        """End the renderer's child."""
        self._renderer.close()


def _with_objects(message: Message) -> dict[str, Any]:
    """Return a message in the form that engines pass to a template: arguments as objects, absent content as
    "".
    """
    turn = {**message, "content": message.get("content") or ""}
    if message.get("tool_calls"):
        turn["tool_calls"] = [_with_object(call) for call in message["tool_calls"]]
    return turn


def _with_object(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    if isinstance(function.get("arguments"), str):
        function["arguments"] = json.loads(function["arguments"])
    return {**call, "function": function}


AGAIN = 2  # further streams that are broken off, until a limit is named


def only_streamed(outcome: Outcome) -> Outcome:
    """Return the outcome of a streamed answer, with the note that the whole one is right."""
    note = Reason(CommonReason.WHOLE_IS_RIGHT)
    return named(replace(outcome, notes=(*outcome.notes, note)), "streamed")


def streaming_fault(ctx: Context, prompt: Prompt, outcome: Outcome) -> Fail:
    """Return the fault of streaming: the engine, unless the document names the wrong parser."""
    seen = ctx.look(prompt)
    missed = unread(seen, prompt) if seen is not None else None
    if seen is not None and missed is not None:
        remedy = OTHER_REASONING_PARSER if thinks(seen.written) else OTHER_TOOL_PARSER
        if looks_like_call(seen.written, prompt.tools) and not seen.tool_calls:
            remedy = OTHER_TOOL_PARSER
        return failing(outcome, "configuration", remedy, missed)
    if proof_check.thinks_never(ctx):
        return failing(outcome, "configuration", NO_REASONING_PARSER)
    better = proof_check.whole_in_pieces(ctx) if prompt.tools else None
    if better is not None:
        return failing(outcome, "configuration", better)
    return failing(outcome, "engine", _whole_until(ctx, prompt))


def _whole_until(ctx: Context, prompt: Prompt) -> Reason:
    """Return the remedy for broken streams, with what is changed in them where that is seen."""
    try:
        change = mutations.told(ctx.first(prompt), ctx.first(prompt, stream=True))
    except ExchangeError:
        return WHOLE_ANSWERS
    return WHOLE_ANSWERS if change is None else Reason(Remedy.WHOLE_ANSWERS, change=change)


def broken(error: ExchangeError, ctx: Context) -> Reason | None:
    """Return the remedy for a stream that cannot be read, where all whole answers can."""
    if not isinstance(error, ReplyError | ServerUnreachable) or not _streamed_last(ctx):
        return None
    if isinstance(error, StreamCut) and _is_whole(bytes(ctx.log[-1].received)):
        return Reason(Remedy.HEED_OPTIONS, option="stream")
    longer = _longer(ctx) if isinstance(error, ServerUnreachable | StreamCut) else None
    if longer is None and isinstance(error, ReplyError):
        return Reason(Remedy.WHOLE_ANSWERS, change=error.reason)
    return longer


def _is_whole(body: bytes) -> bool:
    """Return whether a whole answer came in place of a stream."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and "choices" in answer


def _longer(ctx: Context) -> Reason | None:
    """Return the remedy for a limit of streams: one is broken off each time, and a short one never."""
    cut, request = ctx.log[-1], ctx.log[-1].request or {}
    if not cut.received or any(_ends(request, ctx) for _ in range(AGAIN)):
        return None
    if not _ends({**request, "max_tokens": 1}, ctx):
        return None
    size = max(len(one.received) for one in (cut, *ctx.log[-AGAIN - 1 : -1]))
    return Reason(Remedy.LONGER_STREAMS, seconds=cut.seconds, size=size)


def _ends(request: Mapping[str, Any], ctx: Context) -> bool:
    try:
        ctx.client.chat(request, ctx.log)
    except ExchangeError:
        return False
    return True


def _streamed_last(ctx: Context) -> bool:
    """Return whether the last answer was streamed, and all whole ones were readable."""
    requests = [e for e in ctx.log if e.request is not None]
    wholes = [e for e in requests if not (e.request or {}).get("stream")]
    return bool(requests and (requests[-1].request or {}).get("stream")) and all(
        e.error is None for e in wholes
    )
