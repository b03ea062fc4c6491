"""The probes, one module a subject, in the order of the report."""

from __future__ import annotations

from importer.registry import Registry
from importer.validation.expectations import Expectations
from importer.validation.probe import Probe
from importer.validation.probes.cache import prefix_cache
from importer.validation.probes.chat import (
    default_max_tokens,
    history,
    likelihood,
    log_probabilities,
    long_prompt,
    no_special_tokens,
    plain_chat,
    plain_completion,
    simple_answers,
    stream_equals_whole,
    system_role,
    token_limit,
    two_user_turns,
    usage_counts,
)
from importer.validation.probes.message_forms import message_forms
from importer.validation.probes.other_apis import (
    count_tokens,
    messages,
    messages_tools,
    responses,
    responses_reasoning,
    responses_tools,
)
from importer.validation.probes.prompt import (
    prompt_counts,
    prompt_rendered,
    template_coverage,
    token_numbers,
    tokenize_round_trip,
    tokenizer_whole,
    tools_in_prompt,
    turns_rendered,
)
from importer.validation.probes.reasoning import reasoning_apart, reasoning_cut, reasoning_off
from importer.validation.probes.sampling import (
    guided_output,
    request_options,
    sampling_arrives,
    stop_strings,
    stop_words,
    structured_output,
)
from importer.validation.probes.server import (
    client_disconnect,
    concurrency,
    context_length,
    files_as_imported,
    first_answer,
    health,
    memory_flat,
    memory_predicted,
    model_listed,
    settings_read_back,
)
from importer.validation.probes.tasks import classes, embedding, images, rerank, transcription
from importer.validation.probes.tools import (
    call_history,
    call_id_returns,
    invented_tool,
    multi_step_calls,
    no_argument_call,
    no_tool_needed,
    parallel_calls,
    tool_call,
    tool_call_streamed,
    tool_choice,
    tool_result_turn,
    truncated_call,
    typed_arguments,
)

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
    message_forms,
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
    "probes", {one.name: one for one in PROBES}, Probe, lambda one: one.needs(Expectations())
)


def every() -> tuple[Probe, ...]:
    """Return all probes, those of packages last."""
    return tuple(probe for _, probe in BY_NAME.every())
