"""The options of vLLM that a document may set: ``engine_args``, and ``options`` that begin with ``--``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from importer.config_file import field_paths
from importer.engines.base import Document, Unstartable, invalid, number, word
from importer.reasons import Reason

# Nothing here loads code or opens files.
ARGUMENTS = (
    "all2all_backend", "allow_deprecated_quantization", "async_scheduling", "attention_backend", "block_size",
    "chat_template_content_format",
    "config_format", "convert", "cpu_offload_gb", "data_parallel_address", "data_parallel_backend",
    "data_parallel_hybrid_lb", "data_parallel_rpc_port", "data_parallel_size", "data_parallel_size_local",
    "data_parallel_start_rank", "decode_context_parallel_size", "disable_cascade_attn",
    "disable_sliding_window", "distributed_executor_backend", "enable_chunked_prefill", "enable_eplb",
    "enable_expert_parallel", "enable_prefix_caching", "expert_placement_strategy", "hf_overrides",
    "kv_cache_dtype", "kv_cache_memory_bytes", "language_model_only", "mamba_cache_dtype",
    "mamba_ssm_cache_dtype", "master_addr", "master_port", "max_logprobs", "max_num_batched_tokens",
    "max_num_seqs", "mm_processor_kwargs", "model_impl", "moe_backend", "nnodes", "node_rank",
    "num_gpu_blocks_override", "pipeline_parallel_size", "prefill_context_parallel_size",
    "runner", "scheduling_policy", "seed", "speculative_config", "tokenizer_mode", "tool_strict_level",
)  # fmt: skip
# Where vLLM would also take the name of a class, and import it.
CHOICES = {
    "chat_template_content_format": ("auto", "string", "openai"),
    "distributed_executor_backend": ("mp", "ray", "uni"),
}
SPECULATION = {"method", "num_speculative_tokens"}  # the model's own heads; no second model, no class by name


def parsers(document: Document) -> Iterator[str]:
    """Yield the flags for the parsers of the document; vllm-mlx has the same ones."""
    tools, thoughts = (field_paths.parser(document, key) for key in ("tool_parser", "reasoning_parser"))
    if tools is not None:
        yield "--enable-auto-tool-choice"
        yield f"--tool-call-parser={word(document, 'tool_parser', tools)}"
    if thoughts is not None:
        yield f"--reasoning-parser={word(document, 'reasoning_parser', thoughts)}"


def with_flags(document: Document) -> Document:
    """Return the document with its flags moved to ``engine_args``; existing ``engine_args`` win, as in
    LocalAI.

    Raises DocumentError("invalid") for a flag that is not allowed.
    """
    flags = [o for o in field_paths.of(document) if o.key.startswith("--")]
    if not flags:
        return document
    arguments: dict[str, Any] = {}
    for option in flags:
        key = option.key.removeprefix("--").replace("-", "_")
        negated = key.startswith("no_") and option.value is None
        key = key.removeprefix("no_") if negated else key
        if key not in ARGUMENTS:
            raise invalid(document, Reason(Unstartable.FLAG_NOT_ALLOWED, flag=option.key, known=ARGUMENTS))
        arguments[key] = False if negated else _value(option)
    options = [o.text for o in field_paths.of(document) if not o.key.startswith("--")]
    return {
        **document,
        "options": options,
        "engine_args": {**arguments, **(document.get("engine_args") or {})},
    }


def _value(option: field_paths.Option) -> Any:
    if option.value is not None and option.value.startswith("{"):
        try:
            return json.loads(option.value)
        except (ValueError, RecursionError):
            return option.value
    return option.typed


def extra(document: Document) -> Iterator[str]:
    """Yield ``engine_args``, each as one word; raises DocumentError("invalid")."""
    for key, value in (document.get("engine_args") or {}).items():
        if key not in ARGUMENTS:
            raise invalid(document, Reason(Unstartable.NO_ARGUMENT, key=key, known=ARGUMENTS))
        if key in CHOICES and value not in CHOICES[key]:
            known = CHOICES[key]
            raise invalid(document, Reason(Unstartable.NOT_ONE_OF, key=key, value=value, known=known))
        if key == "speculative_config":
            _check_speculation(document, value)
        if isinstance(value, bool):
            yield f"--{'' if value else 'no-'}{flag(key)}"
        elif isinstance(value, Mapping):
            yield f"--{flag(key)}={json.dumps(value)}"
        elif isinstance(value, str):
            yield f"--{flag(key)}={word(document, f'engine_args.{key}', value)}"
        else:
            yield f"--{flag(key)}={number(document, f'engine_args.{key}', value)}"


def flag(key: str) -> str:
    """Return a key as vLLM's command line spells it."""
    return key.replace("_", "-")


def _check_speculation(document: Document, value: object) -> None:
    if not isinstance(value, Mapping) or set(value) - SPECULATION or value.get("method") == "custom_class":
        raise invalid(document, Reason(Unstartable.SPECULATION, keys=sorted(SPECULATION)))
