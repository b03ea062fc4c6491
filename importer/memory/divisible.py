"""Numbers of cards that the heads, the states, the blocks of scales and the tokens of a model divide by.

Decode context parallelism divides tokens: the cards of a tensor group each keep a part of a sequence.
After vLLM 0.33.0, ``verify_with_parallel_config`` of ``config/model.py``: with a latent cache (MLA) the
number divides the tensor size. With heads of keys it divides the copies of a head and the queries of each
head. Every layer has to keep all tokens: ``SlidingWindowSpec`` rejects it, and states are not divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from importer.hub.snapshot import whole
from importer.memory.experts import EXPERT_WIDE
from importer.memory.layers import Attention, Cross, Latent, State
from importer.memory.plans import Split
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
    from importer.memory.scale_blocks import scale_block

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


def most(shape: Shape, tensor: int) -> int:
    """Return the most cards of ``tensor`` that can each keep a part of the tokens; 1 where none can."""
    caches = {cached for layer in shape.layers for cached in layer}
    if caches and all(isinstance(c, Latent) and _keeps_all(c) for c in caches):
        return tensor
    heads = {(c.heads, c.kv_heads) for c in caches if isinstance(c, Attention) and not (c.window or c.chunk)}
    if len(heads) != 1 or not all(isinstance(c, Attention) and not (c.window or c.chunk) for c in caches):
        return 1
    return max(copies_divided(*heads.pop(), tensor))


def copies_divided(queries: int, keys: int, tensor: int) -> tuple[int, ...]:
    """Return the numbers of cards that can each keep a part of a sequence: 1, and divisors of the copies."""
    if not keys or tensor % keys or queries % keys:
        return (1,)
    return tuple(n for n in range(1, tensor // keys + 1) if tensor % n == (queries // keys) % n == 0)


def _keeps_all(cache: Latent) -> bool:
    """Return whether a latent layer keeps one vector for each token: no window, no selection, no packing."""
    return cache.every == 1 and not (cache.window or cache.indexer or cache.sparse or cache.packed)


def parted(splits: Iterable[Split], shape: Shape) -> Iterator[Split]:
    """Yield the layouts whose tensor groups can divide the tokens of a sequence, in as many parts as can be.

    Copies of attention in one server stay as they are: each has its own sequences.
    """
    for split in splits:
        number = most(shape, split.tensor) if split.data == 1 else 1
        if number > 1:
            yield replace(split, parts=number)
