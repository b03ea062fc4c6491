"""The probes, one module a subject, in the order of the report."""

from __future__ import annotations

from importer.registry import Registry
from importer.validation.expectations import Expectations
from importer.validation.probe import Probe
from importer.validation.probes.cache import prefix_cache
from importer.validation.probes.chat import (
    no_special_tokens,
    plain_chat,
    simple_answers,
    stream_equals_whole,
    usage_counts,
)
from importer.validation.probes.ends import answer_ends
from importer.validation.probes.message_forms import message_forms
from importer.validation.probes.other_apis import other_paths
from importer.validation.probes.prompt import prompt_rendered, template_coverage, tokenizer_whole
from importer.validation.probes.reasoning import reasoning_apart, reasoning_off
from importer.validation.probes.requests import malformed_requests, tool_choice
from importer.validation.probes.sampling import request_options, sampling_arrives, structured_output
from importer.validation.probes.server import (
    concurrency,
    files_as_imported,
    first_answer,
    health,
    model_listed,
    settings_read_back,
)
from importer.validation.probes.tasks import task_output
from importer.validation.probes.tools import no_tool_needed, tool_call, tool_result_turn

PROBES: tuple[Probe, ...] = (
    health, first_answer, model_listed, settings_read_back, files_as_imported, task_output, plain_chat,
    simple_answers, prompt_rendered, template_coverage, stream_equals_whole,
    no_special_tokens, reasoning_apart, reasoning_off, answer_ends, usage_counts, structured_output,
    sampling_arrives, message_forms, tokenizer_whole, tool_call, tool_choice, tool_result_turn,
    no_tool_needed, other_paths, request_options, concurrency, prefix_cache, malformed_requests,
)  # fmt: skip
BY_NAME = Registry[Probe](
    "probes", {one.name: one for one in PROBES}, Probe, lambda one: one.needs(Expectations())
)


def every() -> tuple[Probe, ...]:
    """Return all probes, those of packages last."""
    return tuple(probe for _, probe in BY_NAME.every())
