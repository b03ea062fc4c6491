"""mlx's caches: arrays that grow in steps, rotate at a window, or stay as they are.

After mlx-lm 0.32.2, ``models/cache.py``: no pool and no pages; each sequence has arrays of its own.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from importer.fit.dtypes import value_bytes
from importer.fit.layer import Attention, Cache, Cross, Indexer, Latent, State
from importer.fit.result import Amount, Load
from importer.fit.shape import Shape

STEP = 256  # tokens by which an array grows
PREFILL = 2048  # tokens of one step of a prompt, all of which a rotating cache holds for that long
WIDE_STATES = {"mamba2", "delta", "kimi", "lightning"}  # whose recurrence is kept in 32 bits
# Types whose windows mlx-lm masks without forgetting anything.
KEEPS_ALL = {"gemma2", "llama4_text", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"}


def sequence(shape: Shape, load: Load) -> tuple[Amount, Amount]:
    """Bytes of one sequence: keys and values, and states."""
    value = value_bytes(shape, load)
    caches = [c for layer in shape.layers for c in layer]
    mixed = any(isinstance(c, State) or (isinstance(c, Attention) and not c.window) for c in caches)
    rotates = mixed and shape.model_type not in KEEPS_ALL
    keys = Amount.sum(_keys(c, load, value, rotates) for c in caches if not isinstance(c, State))
    states = sum(state_size(c, value) for c in caches if isinstance(c, State))
    return keys, Amount.exactly(states)


def _keys(cache: Cache, load: Load, value: int, rotates: bool) -> Amount:
    token = _token(cache) * value
    if isinstance(cache, Cross):
        return Amount.exactly(token * cache.tokens)
    limit = None
    if isinstance(cache, Attention) and rotates:  # where all layers have one window, mlx keeps every token
        limit = cache.window or cache.chunk
    limit = limit or load.rotating
    if limit is None or limit >= load.context:
        stepped = _stepped(load.context)
        return Amount.exactly(token * (stepped if limit is None else min(stepped, limit)))
    most = min(limit + PREFILL - 1, load.context)
    return Amount(token * limit, token * limit, token * most)


def _stepped(tokens: int) -> int:
    return ceil(tokens / STEP) * STEP


def _token(cache: Cache) -> int:
    """Values that one token has in one layer."""
    if isinstance(cache, Attention):
        return cache.kv_heads * (cache.head_size + cache.value_size)
    if isinstance(cache, Latent):
        return ceil(Fraction(cache.width, cache.every)) + 2 * cache.indexer
    if isinstance(cache, Indexer):
        return cache.width
    return 2 * cache.kv_heads * cache.head_size if isinstance(cache, Cross) else 0


def state_size(cache: State, value: int) -> int:
    """Bytes of one layer's state; delta nets and Mamba 2 keep their recurrence in 32 bits."""
    recurrent = 4 if cache.kind in WIDE_STATES else value
    return sum(t.parts * t.size * (recurrent if t.recurrent else value) for t in cache.tensors)
