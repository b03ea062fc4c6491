"""The probes, one module a subject, in the order of the report."""

from __future__ import annotations

from importer.registry import Registry
from importer.validation.expectations import Expectations
from importer.validation.probe import Probe
from importer.validation.probes.cache import prefix_cache
from importer.validation.probes.chat import (
    history,
    likelihood,
    log_probabilities,
    long_prompt,
    no_special_tokens,
    plain_chat,
    plain_completion,
    simple_answers,
    stream_equals_whole,
    token_limit,
    usage_counts,
)
from importer.validation.probes.message_forms import message_forms
from importer.validation.probes.other_apis import messages, responses
from importer.validation.probes.prompt import (
    prompt_counts,
    prompt_rendered,
    template_coverage,
    token_numbers,
    tokenizer_whole,
)
from importer.validation.probes.reasoning import reasoning_apart, reasoning_cut, reasoning_off
from importer.validation.probes.sampling import (
    request_options,
    sampling_arrives,
    stop_strings,
    structured_output,
)
from importer.validation.probes.server import (
    client_disconnect,
    concurrency,
    files_as_imported,
    first_answer,
    health,
    memory_flat,
    memory_predicted,
    model_listed,
    settings_read_back,
)
from importer.validation.probes.tasks import images, pooling, transcription
from importer.validation.probes.tools import (
    no_tool_needed,
    tool_call,
    tool_choice,
    tool_result_turn,
    tools_in_prompt,
    truncated_call,
    typed_arguments,
)

PROBES: tuple[Probe, ...] = (
    health,
    first_answer,
    model_listed,
    settings_read_back,
    memory_predicted,
    files_as_imported,
    pooling,
    transcription,
    plain_completion,
    plain_chat,
    simple_answers,
    likelihood,
    prompt_rendered,
    prompt_counts,
    template_coverage,
    stream_equals_whole,
    no_special_tokens,
    reasoning_apart,
    reasoning_off,
    reasoning_cut,
    stop_strings,
    token_limit,
    usage_counts,
    log_probabilities,
    structured_output,
    sampling_arrives,
    message_forms,
    history,
    tokenizer_whole,
    token_numbers,
    tools_in_prompt,
    tool_call,
    typed_arguments,
    tool_choice,
    truncated_call,
    tool_result_turn,
    no_tool_needed,
    images,
    messages,
    responses,
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
