"""Where each decision lives in the YAML; docs/document.md shows the same table."""

from __future__ import annotations

# Decisions that become ``options: ["key:value"]``, as LocalAI's vLLM backend reads them.
OPTIONS = ("tool_parser", "reasoning_parser")

# Decisions about the model that only our own block records.
FACTS = (
    "kind", "family", "quantization", "quantization_scheme", "modalities", "end_tokens", "sampling_modes",
)  # fmt: skip

# Decisions that only the receipt records.
SAID = ("code",)

# What the engine does by itself: said with its reason, written only where somebody set it.
UNWRITTEN = (
    "engine_args.enable_prefix_caching", "engine_args.enable_chunked_prefill", "engine_args.kv_cache_dtype",
)  # fmt: skip

# Top-level keys a person or --set may use: LocalAI's, as its loader reads them, and our one block.
TOP_LEVEL = (
    "name", "description", "backend", "known_usecases", "parameters", "template", "options", "context_size",
    "max_model_len", "dtype", "quantization", "load_format", "gpu_memory_utilization", "trust_remote_code",
    "enforce_eager", "tensor_parallel_size", "disable_log_stats", "limit_mm_per_prompt", "engine_args",
    "chat_template_kwargs", "stopwords", "system_prompt", "reasoning", "reasoning_effort", "function",
    "artifacts", "draft_model", "n_draft", "lora_adapter", "type", "mmproj", "embeddings", "threads", "f16",
    "importer",
)  # fmt: skip

SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty",
    "max_tokens", "seed",
)  # fmt: skip

# Everything LocalAI reads under ``parameters``, for --set.
PARAMETERS = (
    *SAMPLING, "typical_p", "tfz", "n", "n_keep", "batch", "echo", "ignore_eos", "logit_bias",
    "repeat_last_n", "rope_freq_base", "rope_freq_scale", "negative_prompt_scale",
)  # fmt: skip


def path_of(key: str) -> tuple[str, ...] | None:
    """The YAML path of a decision; ``None`` where it is an option, a fact of our own block, or only said."""
    if key in OPTIONS or key in FACTS or key in SAID:
        return None
    return tuple(key.split("."))
