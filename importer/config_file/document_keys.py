"""``options``: LocalAI's typed ``key:value`` strings, read and written without loss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from importer.decisions.decision import FRONTENDS, Frontend

# Decisions that become ``options: ["key:value"]``, as LocalAI's vLLM backend reads them.
OPTIONS = ("tool_parser", "reasoning_parser")

# Decisions about the model that only our own block records.
FACTS = (
    "kind", "family", "quantization", "quantization_scheme", "modalities", "end_tokens", "sampling_modes",
    "outputs",
)  # fmt: skip

# Decisions that only the receipt records.
REMARKS = ("code", "prompts", "way_in", "token_numbers", "sisters", "listed_sisters")

# Remarks on other repositories: a change of them is no news of this one.
ELSEWHERE = ("listed_sisters",)

# Defaults of the engine: shown with their reasons, written only where a person set them.
UNWRITTEN = (
    "engine_args.enable_prefix_caching", "engine_args.enable_chunked_prefill", "engine_args.kv_cache_dtype",
)  # fmt: skip

# Top-level keys a person or --set may use: LocalAI's, as its loader reads them, and our one block.
TOP_LEVEL = (
    "name", "description", "backend", "known_usecases", "parameters", "template", "options", "context_size",
    "max_model_len", "dtype", "quantization", "load_format", "gpu_memory_utilization", "trust_remote_code",
    "enforce_eager", "tensor_parallel_size", "disable_log_stats", "limit_mm_per_prompt", "engine_args", "env",
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
    """Return the YAML path of a decision; ``None`` for an option, a fact of the importer's block, or a
    remark.
    """
    if key in OPTIONS or key in FACTS or key in REMARKS:
        return None
    return tuple(key.split("."))


KEY = "options"  # where they stand in a document
NONE = {"", "none", "null"}  # what a person writes for a parser that there is to be none of
WORDS: Mapping[str, bool] = {"true": True, "false": False}
WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
NUMBER = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Option:
    """One entry; ``text`` is written back as it stands, ``key`` and ``value`` are what it means.

    ``value`` is ``None`` for a bare word and may hold colons or be empty. An entry that begins with ``--``
    is a flag of the engine's, whose value may also stand after ``=``, as LocalAI's vLLM backend reads it.
    """

    text: str
    key: str
    value: str | None

    @property
    def typed(self) -> bool | int | float | str:
        """Return the value with its type inferred; a bare word is true."""
        if self.value is None:
            return True
        word = WORDS.get(self.value.lower())
        if word is not None:
            return word
        if WHOLE.fullmatch(self.value):
            return int(self.value)
        return float(self.value) if NUMBER.fullmatch(self.value) else self.value


def parse(text: str) -> Option:
    """Read one entry; white space around key and value means nothing."""
    separator = re.search("[:=]" if text.lstrip().startswith("--") else ":", text)
    if separator is None:
        return Option(text, text.strip(), None)
    return Option(text, text[: separator.start()].strip(), text[separator.end() :].strip())


def of(document: Mapping[str, Any]) -> tuple[Option, ...]:
    """Return every entry of a document in its order, repeated keys included."""
    entries = document.get(KEY)
    return tuple(parse(str(e)) for e in entries) if isinstance(entries, list | tuple) else ()


def grouped(entries: Iterable[Option]) -> dict[str, tuple[Option, ...]]:
    """Return the entries by key, both in their order."""
    groups: dict[str, list[Option]] = {}
    for option in entries:
        groups.setdefault(option.key, []).append(option)
    return {key: tuple(options) for key, options in groups.items()}


def parser(document: Mapping[str, Any], key: str) -> str | None:
    """Return the parser named under ``key``: the last entry counts, and ``none`` or nothing is none."""
    named = [o.value or "" for o in of(document) if o.key == key]
    return named[-1] if named and named[-1].lower() not in NONE else None


def write(key: str, value: object) -> str:
    """Return an entry with ``value``; ``None`` makes a bare word."""
    if value is None:
        return key
    return f"{key}:{str(value).lower() if isinstance(value, bool) else value}"


def frontend_of(document: Mapping[str, Any]) -> Frontend | None:
    """Return vLLM's frontend of a document; ``None`` where it names none, or none that there is."""
    block = document.get("importer")
    engine = block.get("engine") if isinstance(block, Mapping) else None
    named = engine.get("frontend") if isinstance(engine, Mapping) else None
    return next((known for known in FRONTENDS if known == named), None)
