"""Numbers of cards that the heads, the states and the blocks of scales of a model divide by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.hub.snapshot import whole
from importer.memory.experts import EXPERT_WIDE
from importer.memory.layers import Attention, Cross, State
from importer.memory.scale_blocks import scale_block
from importer.memory.shape import Shape
from importer.signals.architecture import text_config

WIDTHS = (
    "intermediate_size", "ffn_hidden_size", "moe_intermediate_size", "shared_expert_intermediate_size",
    "expert_ffn_hidden_size",
)  # fmt: skip


def divides(config: Mapping[str, Any], shape: Shape, number: int, *, experts: bool = False) -> bool:
    """Return whether vLLM can spread every layer over ``number`` cards; ``experts`` stay whole.

    The number must divide the heads, and those of keys and values too, unless each card has a copy of one.
    The same holds for the scale blocks of quantised weights (vLLM's ``validate_fp8_block_shape``).
    """
    if shape.heads % number:
        return False
    for cached in {cached for layer in shape.layers for cached in layer}:
        if isinstance(cached, Attention | Cross) and cached.kv_heads % number and number % cached.kv_heads:
            return False
        if isinstance(cached, State) and not cached.divides(number):
            return False
    block = scale_block(config)
    keys = [key for key in WIDTHS if not (experts and key in _expert_keys(config, shape))]
    widths = [w for key in keys if (w := whole(text_config(config).get(key), 1))]
    return block is None or all(w % (number * block) == 0 for w in widths if w % block == 0)


def _expert_keys(config: Mapping[str, Any], shape: Shape) -> tuple[str, ...]:
    """Return the keys with the width of one expert: the general ones, too, where no layer is dense."""
    dense = any(part.role == "mlp" for block in shape.blocks for part in block.parts)
    named = any(text_config(config).get(key) for key in EXPERT_WIDE)
    return EXPERT_WIDE if dense or named else WIDTHS
