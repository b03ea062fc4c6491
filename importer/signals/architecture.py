"""Parts, model types and architectures of ``config.json``, and the inputs of a model other than text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from importer.hub.snapshot import Snapshot, listed, mapping, text

FILE = "config.json"


# vLLM 0.32 ``config/model.py``: architecture to tokenizer mode, for modes with a renderer. The values are
# also the tool parsers of these renderers; a known family is recognised by them without a config.
MODES = {
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV4ForConditionalGeneration": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "InklingForCausalLM": "inkling",
    "InklingForConditionalGeneration": "inkling",
}

# SGLang 0.5.23 ``chat_encoding.py``: part of the first architecture to its own encoder; the last one is for
# a tokenizer without a template.
ENCODERS = {"DeepseekV4": "dsv4", "KimiK3": "kimi_k3", "InklingForConditionalGeneration": "inkling"}
WITHOUT_TEMPLATE = {"DeepseekV3": "dsv32"}

WIDEST = 1 << 20  # values of a vector, tokens of a text
# The parts of a config with the language model, where a model has towers beside it.
TEXT_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")


def text_config(config: Mapping[str, object]) -> Mapping[str, object]:
    """Return the part that describes the language model; vision models nest it."""
    for key in TEXT_CONFIGS:
        inner = config.get(key)
        if isinstance(inner, Mapping) and inner:
            return text_config(inner)
    return config


def model_type(snapshot: Snapshot) -> str | None:
    """Return ``model_type`` at the top, in its own spelling."""
    return text(config_of(snapshot).get("model_type"))


def model_types(snapshot: Snapshot) -> tuple[str, ...]:
    """Return ``model_type`` at the top and of the nested language model, in lower case."""
    config = config_of(snapshot)
    types = (config.get("model_type"), text_config(config).get("model_type"))
    return tuple(dict.fromkeys(t.lower() for t in types if isinstance(t, str) and t))


def config_of(snapshot: Snapshot) -> Mapping[str, object]:
    """Return ``config.json``, else the part of it in the Hub's response."""
    config = snapshot.json(FILE)
    if config:
        return config
    return mapping(snapshot.info.get("config"))


def object_of(snapshot: Snapshot, path: str) -> Mapping[str, object]:
    """Return the JSON object of a small file; empty without the file, and for any other text."""
    try:
        return mapping(json.loads(snapshot.texts.get(path, "{}")))
    except (ValueError, RecursionError):
        return {}


def architectures(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the class names under ``architectures``."""
    return tuple(a for a in listed(config_of(snapshot).get("architectures")) if isinstance(a, str))
