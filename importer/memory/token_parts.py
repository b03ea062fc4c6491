"""Decode context parallelism: the cards of a tensor group that each keep a part of a sequence's tokens.

After vLLM 0.33.0, ``verify_with_parallel_config`` of ``config/model.py``: with a latent cache (MLA) the
number divides the tensor size. With heads of keys it divides the copies of a head and the queries of each
head. Every layer has to keep all tokens: ``SlidingWindowSpec`` rejects it, and states are not divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from importer.memory.layers import Attention, Latent
from importer.memory.plans import Split
from importer.memory.shape import Shape


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
