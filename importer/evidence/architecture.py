"""What ``config.json`` says: model type, context length, quantisation, and the backend these imply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from importer.evidence.fact import Evidence
from importer.hub.snapshot import Snapshot

FILE = "config.json"
METHOD = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}", re.ASCII)  # how a quantisation is named
CONTEXT_KEYS = (
    "max_position_embeddings",
    "max_sequence_length",
    "seq_length",
    "n_positions",
    "model_max_length",
)
LARGEST_CONTEXT = 100_000_000  # tokenizer files write 1e30 for "no limit"


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that describes the language model; vision models nest it."""
    for key in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(key)
        if isinstance(inner, Mapping) and inner:
            return text_config(inner)
    return config


def model_types(snapshot: Snapshot) -> tuple[str, ...]:
    """``model_type`` at the top and of the language model inside, lower case."""
    config = config_of(snapshot)
    found = (config.get("model_type"), text_config(config).get("model_type"))
    return tuple(dict.fromkeys(t.lower() for t in found if isinstance(t, str) and t))


def config_of(snapshot: Snapshot) -> Mapping[str, Any]:
    """``config.json``, else the part of it that the Hub's own answer carries."""
    config = snapshot.json(FILE)
    if config:
        return config
    told = snapshot.info.get("config")
    return told if isinstance(told, Mapping) else {}


def architectures(snapshot: Snapshot) -> tuple[str, ...]:
    """Class names under ``architectures``."""
    listed = config_of(snapshot).get("architectures")
    return tuple(a for a in listed if isinstance(a, str)) if isinstance(listed, list) else ()


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Context length and quantisation, as far as the files tell."""
    return [*_context(snapshot), *_quantisation(snapshot)]


def _context(snapshot: Snapshot) -> list[Evidence]:
    config = config_of(snapshot)
    for key in CONTEXT_KEYS:
        value = text_config(config).get(key, config.get(key))
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < LARGEST_CONTEXT:
            quote = f"{key}: {value}"
            return [Evidence("config", "max_model_len", value, FILE, f"{FILE} says {quote}", quote)]
    return []


def _quantisation(snapshot: Snapshot) -> list[Evidence]:
    method, quote, source = quantisation(snapshot)
    if method is None:
        return []
    return [Evidence("config", "quantization", method, source, f"{source} says {quote}", quote)]


def quantisation(snapshot: Snapshot) -> tuple[str | None, str, str]:
    """Method, quote and file; ``mlx`` where group size and bits stand without a method."""
    config = config_of(snapshot)
    for key in ("quantization_config", "quantization", "compression_config"):
        block = config.get(key) or text_config(config).get(key)
        if isinstance(block, Mapping):
            method = block.get("quant_method")
            if isinstance(method, str) and METHOD.fullmatch(method):
                return method.lower(), f"quant_method: {method}", FILE
            size, bits = block.get("group_size"), block.get("bits")
            if method is None and isinstance(size, int) and isinstance(bits, int):
                return "mlx", f"group_size: {size}, bits: {bits}, no quant_method", FILE
    modelopt = snapshot.json("hf_quant_config.json").get("quantization")
    algorithm = modelopt.get("quant_algo") if isinstance(modelopt, Mapping) else None
    if isinstance(algorithm, str) and METHOD.fullmatch(algorithm):  # null: only the cache is quantised
        return "modelopt", f"quant_algo: {algorithm}", "hf_quant_config.json"
    return None, "", FILE
