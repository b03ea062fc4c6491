"""The probes: one module each, one line each in the registry, in the order of the report."""

from __future__ import annotations

from typing import Protocol

from importer.validation.context import Context
from importer.validation.outcome import Outcome
from importer.validation.probes import (
    health,
    model_listed,
    no_special_tokens,
    no_tool_needed,
    plain_chat,
    plain_completion,
    reasoning_apart,
    stream_equals_whole,
    tool_call,
    tool_call_streamed,
    tool_result_turn,
    tools_in_prompt,
)
from importer.validation.promise import Promise


class Probe(Protocol):
    """A probe module. ``LESSON`` says in one line who was bitten by what."""

    NAME: str
    LESSON: str

    def needs(self, promise: Promise, /) -> str | None:
        """Why the probe does not apply, or ``None``."""

    def run(self, ctx: Context, /) -> Outcome:
        """Ask and judge; may raise ExchangeError, which the runner turns into an outcome."""


PROBES: tuple[Probe, ...] = (
    health,
    model_listed,
    plain_completion,
    plain_chat,
    stream_equals_whole,
    no_special_tokens,
    reasoning_apart,
    tools_in_prompt,
    tool_call,
    tool_call_streamed,
    tool_result_turn,
    no_tool_needed,
)
