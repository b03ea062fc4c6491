"""Blocks of quantised weights that share a scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.hub.snapshot import whole
from importer.signals.architecture import text_config

MOST_SIDES = 16  # of a block in which weights share a scale; real ones have two


def scale_block(config: Mapping[str, Any]) -> int | None:
    """Return the number of weights that share a scale along the spread side, or ``None``."""
    block = config.get("quantization_config") or text_config(config).get("quantization_config")
    groups = _part(_part(block, "config_groups"), "group_0")
    weights = _part(groups, "weights")
    sizes = [_get(block, "weight_block_size"), _get(block, "group_size")]
    sizes += [_get(weights, "block_structure"), _get(weights, "group_size")]
    flat = [n for value in sizes for n in (value[:MOST_SIDES] if isinstance(value, list) else [value])]
    return max((n for v in flat if (n := whole(v, 2))), default=None)


def _part(block: object, key: str) -> Mapping[str, Any]:
    inner = _get(block, key)
    return inner if isinstance(inner, Mapping) else {}


def _get(block: object, key: str) -> Any:
    return block.get(key) if isinstance(block, Mapping) else None
