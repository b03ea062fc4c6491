"""The sampling values of an engine for a request and a document without any, by decision key.

Read in vLLM 0.32.0 and 0.33.0 (``sampling_params.py``), mlx-lm 0.32.2 (``server.py``), mlx-vlm 0.7.10
(``generate/common.py``), vllm-mlx 0.6.0 (``server.py``) and SGLang 0.5.23 (``sampling_params.py``). A
``generation_config.json`` of the model stands above these on vLLM and SGLang.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OFF = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
DEFAULTS: Mapping[str, Mapping[str, float]] = {
    "vllm": {"temperature": 1.0, "top_p": 1.0, **OFF},
    "sglang": {"temperature": 1.0, "top_p": 1.0, **OFF},
    "mlx": {"temperature": 0.0, "top_p": 1.0, **OFF},
    "mlx-vlm": {"temperature": 0.0, "top_p": 1.0, **OFF},
    "vllm-mlx": {"temperature": 0.7, "top_p": 0.9, **OFF},
}


def sampling_defaults(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return value and source for each key of sampling; empty for an engine that is not known here."""
    block = document.get("importer")
    engine = block.get("engine") if isinstance(block, Mapping) else None
    named = engine if isinstance(engine, Mapping) else {}
    backend = document.get("backend") or named.get("name")
    source = " ".join(str(word) for word in (backend, named.get("version")) if word)
    known = DEFAULTS.get(backend, {}) if isinstance(backend, str) else {}
    return {f"parameters.{key}": {"value": value, "source": source} for key, value in known.items()}
