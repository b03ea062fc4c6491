"""Prompts as the engines render them: one renderer per frontend behind one interface.

A frontend is the part of an engine that turns messages into a prompt. vLLM has two from 0.33 on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from importer.chat_template.samples import Tool
from importer.engines.parsers import ParserWorker, Prompted, Tokens
from importer.frozen import frozen
from importer.reasons import Reason

RENDERING = ("vllm", "mlx", "mlx-vlm")  # engines whose worker renders prompts
FORMATS = ("auto", "string", "openai")  # vLLM's --chat-template-content-format


@frozen
class Conversation:
    """One request: messages and tools in OpenAI's form, and variables of the template."""

    messages: Sequence[Mapping[str, object]]
    tools: Sequence[Tool] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


@frozen
class EnginePrompt:
    """The text that the engine would tokenise; ``format`` is the form of contents that it applied."""

    text: str
    format: str | None = None


@frozen
class EngineRefused:
    """A request without a prompt: the engine answers with an error."""

    reason: Reason


Answer = EnginePrompt | EngineRefused


class EngineRenderer(Protocol):
    """One frontend; ``formats`` are the forms of contents that it can be started with, the default first."""

    @property
    def frontend(self) -> str:
        """Return the name: ``vllm``, ``vllm-rust``, ``mlx``, ``mlx-vlm``."""

    @property
    def formats(self) -> tuple[str, ...]:
        """Return the forms of contents; one for frontends without a choice."""

    def version(self) -> str:
        """Return the version that the frontend reports."""

    def render(self, tokens: Tokens, conversations: Sequence[Conversation]) -> Mapping[str, Sequence[Answer]]:
        """Return for each form of contents one answer per conversation; raises EngineError."""


class WorkerRenderer:
    """The frontend in Python of an engine, run by the worker of its parsers."""

    def __init__(self, worker: ParserWorker) -> None:
        self._worker = worker

    @property
    def frontend(self) -> str:
        """Return the name of the engine."""
        return self._worker.engine

    @property
    def formats(self) -> tuple[str, ...]:
        """Return vLLM's forms of contents; MLX servers have one."""
        return FORMATS if self.frontend == "vllm" else FORMATS[:1]

    def version(self) -> str:
        """Return the version of the engine."""
        return self._worker.version()

    def render(self, tokens: Tokens, conversations: Sequence[Conversation]) -> Mapping[str, Sequence[Answer]]:
        """Return the prompts of the worker; raises EngineError("worker-failed")."""
        sent = [
            {"messages": [*c.messages], "tools": [*c.tools], "kwargs": dict(c.kwargs)} for c in conversations
        ]
        items = self._worker.render(tokens, sent, self.formats)
        return {form: [*map(_answer, answers)] for form, answers in zip(self.formats, items, strict=True)}


def _answer(item: Prompted | Reason) -> Answer:
    return EngineRefused(item) if isinstance(item, Reason) else EnginePrompt(item["text"], item["format"])
