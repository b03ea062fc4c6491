"""Prompts of the served model, rendered with its chat template in the sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from threading import Lock

from importer.chat_template import find
from importer.chat_template.conventions.wrap import wrap
from importer.chat_template.loader import ANY, Loader
from importer.chat_template.render import Renderer, RenderJob, RenderRefused
from importer.chat_template.study import STUDY, Served, TemplateAnalysis
from importer.chat_template.vocabulary import read_vocabulary
from importer.errors import UsageError
from importer.hub.snapshot import Snapshot
from importer.sandbox import OverLimit
from importer.sandbox.task import Closing
from importer.validation.errors import TemplateRefusedError
from importer.validation.prompts import Call, Message, Prompt


class PromptRendering(Closing):
    """A renderer of prompts in the form that an engine tokenises: with tools, switches, arguments as
    objects.

    ``variables`` are those of the engine's start, ``template`` replaces the one of the snapshot that the
    engine's ``loader`` takes. Safe to use from several threads; each prompt is rendered once. Templates get a
    fixed date.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        variables: Mapping[str, object] | None = None,
        template: find.Template | None = None,
        loader: Loader = ANY,
    ) -> None:
        """Read template and vocabulary; raises RepositoryError for a template too large or not JSON."""
        self._snapshot, self._template = snapshot, template or find.find(snapshot, loader)
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

    @property
    def text(self) -> str:
        """Return the template of requests with tools; empty where there is none."""
        return self._template.text if self._template else ""

    def under(self, text: str) -> PromptRendering:
        """Return the rendering with another template; the caller closes it."""
        return PromptRendering(self._snapshot, self._variables, find.Template(text, "tried"))

    def dressed(self, convention: str) -> str | None:
        """Return the template under one of importer's conventions; ``None`` where they do not fit."""
        try:
            own = self._template
            return None if own is None else wrap(own, convention, self._vocabulary, self._renderer)
        except UsageError:
            return None

    def knows(self, variable: str) -> bool:
        """Return whether the variable's name stands in the template."""
        text = "" if self._template is None else self._template.text + self._template.plain
        return re.search(rf"(?<!\w){re.escape(variable)}(?!\w)", text) is not None

    def __call__(self, prompt: Prompt) -> str | None:
        """Return the text of the prompt; raises TemplateRefusedError with the message of the template."""
        return self.at(prompt, 0)

    def at(self, prompt: Prompt, later: float) -> str | None:
        """Return the text of the prompt, rendered ``later`` seconds after the fixed time."""
        if self._template is None:
            return None
        inputs = [prompt.messages, prompt.tools, prompt.switches, prompt.begins, later]
        key = json.dumps(inputs, default=str)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._render(self._text(prompt), prompt, later)
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


def _with_objects(message: Message) -> dict[str, object]:
    """Return a message in the form that engines pass to a template: arguments as objects, absent content as
    "".
    """
    turn: dict[str, object] = {**message, "content": message.get("content") or ""}
    if message.get("tool_calls"):
        turn["tool_calls"] = [_with_object(call) for call in message["tool_calls"]]
    return turn


def _with_object(call: Call) -> dict[str, object]:
    function: dict[str, object] = {**call["function"]}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        function["arguments"] = json.loads(arguments)
    return {**call, "function": function}
