"""LocalAI's deep merge, no JSON merge patch: null is a value, and maps of free keys are one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The maps among the fields of LocalAI's ModelConfig (82c191a): whoever edits one sends it whole.
MAPS = frozenset(
    (
        "chat_template_kwargs", "engine_args", "feature_flags", "parameters.logit_bias",
        "pii_detection.entity_actions", "roles",
    )
)  # fmt: skip


def merge(data: Mapping[str, Any], patch: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Scalars and lists replace, maps of known keys merge; an empty map of free keys takes the key away."""
    result = dict(data)
    for key, value in patch.items():
        path, old = f"{place}{key}", result.get(key)
        if path in MAPS and value == {}:
            result.pop(key, None)
        elif path not in MAPS and isinstance(value, Mapping) and isinstance(old, Mapping):
            result[key] = merge(old, value, f"{path}.")
        else:
            result[key] = value
    return result
