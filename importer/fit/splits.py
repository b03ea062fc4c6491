"""How a model may be spread over several cards: what tensor parallelism must divide, the rest in stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from importer.evidence.architecture import text_config
from importer.fit.layer import Attention, Cross, State
from importer.fit.shape import Shape
from importer.hub.told import whole

WIDTHS = (
    "intermediate_size", "ffn_hidden_size", "moe_intermediate_size", "shared_expert_intermediate_size",
    "expert_ffn_hidden_size",
)  # fmt: skip
MOST_SIDES = 16  # of a block in which weights share a scale; real ones have two


@dataclass(frozen=True, slots=True)
class Split:
    """``tensor`` cards for each stage, ``pipeline`` stages."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def cards(self) -> int:
        """How many cards it takes."""
        return self.tensor * self.pipeline


def splits(config: Mapping[str, Any], shape: Shape, cards: int) -> Iterator[Split]:
    """From one card to all of them, in doubling numbers: as wide as the model's heads and blocks divide."""
    numbers = dict.fromkeys([*(2**n for n in range(cards.bit_length())), cards])
    for number in numbers:
        if number <= cards:
            wide = max(n for n in range(1, number + 1) if number % n == 0 and divides(config, shape, n))
            if number // wide <= len(shape.layers):
                yield Split(wide, number // wide)


def divides(config: Mapping[str, Any], shape: Shape, number: int) -> bool:
    """Whether vLLM can spread every layer over so many cards.

    Heads must come out even, those of keys and values too, unless each card gets a copy of one; so must the
    blocks in which quantised weights are scaled (vLLM's ``validate_fp8_block_shape``).
    """
    if shape.heads % number:
        return False
    for cache in {cache for layer in shape.layers for cache in layer}:
        if isinstance(cache, Attention | Cross) and cache.kv_heads % number and number % cache.kv_heads:
            return False
        if isinstance(cache, State) and not cache.divides(number):
            return False
    block = _block(config)
    widths = [w for key in WIDTHS if (w := whole(text_config(config).get(key), 1))]
    return block is None or all(w % (number * block) == 0 for w in widths if w % block == 0)


def _block(config: Mapping[str, Any]) -> int | None:
    """How many weights share a scale along the side that is spread; ``None`` where they do not."""
    block = config.get("quantization_config") or text_config(config).get("quantization_config")
    groups = _part(_part(block, "config_groups"), "group_0")
    weights = _part(groups, "weights")
    found = [_get(block, "weight_block_size"), _get(block, "group_size")]
    found += [_get(weights, "block_structure"), _get(weights, "group_size")]
    flat = [n for value in found for n in (value[:MOST_SIDES] if isinstance(value, list) else [value])]
    return max((n for v in flat if (n := whole(v, 2))), default=None)


def _part(block: object, key: str) -> Mapping[str, Any]:
    found = _get(block, key)
    return found if isinstance(found, Mapping) else {}


def _get(block: object, key: str) -> Any:
    return block.get(key) if isinstance(block, Mapping) else None
