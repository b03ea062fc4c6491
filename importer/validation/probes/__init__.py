"""The probes: one module each, one line each in the registry, in the order of the report."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from importer.reasons import Reason
from importer.registry import Registry
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Outcome
from importer.validation.probes import (
    call_history,
    call_id_returns,
    classes,
    client_disconnect,
    concurrency,
    context_length,
    count_tokens,
    default_max_tokens,
    embedding,
    files_as_imported,
    first_answer,
    guided_output,
    health,
    history,
    images,
    invented_tool,
    likelihood,
    log_probabilities,
    long_prompt,
    memory_flat,
    memory_predicted,
    messages,
    messages_tools,
    model_listed,
    multi_step_calls,
    no_argument_call,
    no_special_tokens,
    no_tool_needed,
    parallel_calls,
    plain_chat,
    plain_completion,
    prefix_cache,
    prompt_counts,
    prompt_rendered,
    reasoning_apart,
    reasoning_cut,
    reasoning_off,
    request_options,
    rerank,
    responses,
    responses_reasoning,
    responses_tools,
    sampling_arrives,
    settings_read_back,
    simple_answers,
    stop_strings,
    stop_words,
    stream_equals_whole,
    structured_output,
    system_role,
    template_coverage,
    token_limit,
    token_numbers,
    tokenize_round_trip,
    tokenizer_whole,
    tool_call,
    tool_call_streamed,
    tool_choice,
    tool_result_turn,
    tools_in_prompt,
    transcription,
    truncated_call,
    turns_rendered,
    two_user_turns,
    typed_arguments,
    usage_counts,
)


@runtime_checkable
class Probe(Protocol):
    """A probe module. ``LESSON`` is one line on the failure behind the probe.

    A probe for models that pool or transcribe names their kinds in ``TASKS``; without it none applies.
    ``FEATURE`` is one of engines (``engines.base.OFFERS``): without it, a failure is a known limit.
    ``CONCERNS`` has sampling values, one of which the document must have for that.
    """

    NAME: str
    LESSON: str

    def needs(self, promise: Expectations, /) -> Reason | None:
        """Return why the probe does not apply, or ``None``."""

    def run(self, ctx: Context, /) -> Outcome:
        """Send the requests and judge the answers; may raise ExchangeError, an outcome for the runner."""


PROBES: tuple[Probe, ...] = (
    health,
    first_answer,
    model_listed,
    context_length,
    settings_read_back,
    memory_predicted,
    files_as_imported,
    embedding,
    rerank,
    classes,
    transcription,
    plain_completion,
    plain_chat,
    simple_answers,
    likelihood,
    prompt_rendered,
    prompt_counts,
    template_coverage,
    turns_rendered,
    stream_equals_whole,
    no_special_tokens,
    reasoning_apart,
    reasoning_off,
    reasoning_cut,
    stop_strings,
    stop_words,
    token_limit,
    default_max_tokens,
    usage_counts,
    log_probabilities,
    structured_output,
    guided_output,
    sampling_arrives,
    system_role,
    two_user_turns,
    history,
    tokenize_round_trip,
    tokenizer_whole,
    token_numbers,
    tools_in_prompt,
    tool_call,
    tool_call_streamed,
    parallel_calls,
    no_argument_call,
    typed_arguments,
    tool_choice,
    invented_tool,
    truncated_call,
    tool_result_turn,
    call_id_returns,
    call_history,
    multi_step_calls,
    no_tool_needed,
    images,
    messages,
    messages_tools,
    count_tokens,
    responses,
    responses_reasoning,
    responses_tools,
    long_prompt,
    client_disconnect,
    request_options,
    concurrency,
    prefix_cache,
    memory_flat,
)
BY_NAME = Registry[Probe](
    "probes", {one.NAME: one for one in PROBES}, Probe, lambda one: one.needs(Expectations())
)


def every() -> tuple[Probe, ...]:
    """Return all probes, those of packages last."""
    return tuple(probe for _, probe in BY_NAME.every())
