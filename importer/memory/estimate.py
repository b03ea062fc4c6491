"""Estimates of the memory of one device from shape, weights and load.

Weights and caches are counted; the rest is a range, see ``rest``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, prod

from importer import backends
from importer.memory import pages, rest
from importer.memory.estimate_types import CACHES, Amount, Fit, Load, SizeReason, Term, TermReason
from importer.memory.layers import Attention, Cache, Cross, Indexer, Latent, Part, State
from importer.memory.pages import BYTES, computed, kv_name, value_bytes
from importer.memory.quantised import Scheme, sizes
from importer.memory.rest import PREFILL
from importer.memory.shape import Shape
from importer.memory.weights import Weights
from importer.reasons import Reason

STEP = 256  # tokens by which an array grows
WIDE_STATES = {"mamba2", "delta", "kimi", "lightning"}  # with a recurrence in 32 bits
# Model types with windows that mlx-lm masks without freeing the older tokens.
KEEPS_ALL = {"gemma2", "llama4_text", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"}
SHORTEST = 16  # tokens, the shortest context that is tried
UNPROVED = 0.15  # for sparse and compressed caches on devices where no engine counted them
# Tiles of an expert's width and of the hidden size. vLLM 0.33.0: ``oracle/mxfp4.py`` of its fused experts;
# Hopper's after a log (64.38 GiB of gpt-oss-120b, vllm-project/vllm#33155).
TILES = {"cuda": (128, 256), "hopper": (64, 256), "rocm": (256, 256)}
CAPABILITIES = (90, 100, 120)  # of cards whose kernels keep sparse layers in forms of their own


def sequence(shape: Shape, load: Load) -> tuple[Amount, Amount]:
    """Return the bytes of one sequence: keys and values, and states."""
    value = value_bytes(shape, load)
    mixed = any(isinstance(c, State) or (isinstance(c, Attention) and not c.window) for c in shape.caches)
    rotates = mixed and shape.model_type not in KEEPS_ALL
    each = {c: _keys(c, load, value, rotates) for c in shape.caches if not isinstance(c, State)}
    keys = Amount.sum(each[c] for c in shape.caches.elements() if c in each)
    states = sum(state_size(c, value) * n for c, n in shape.caches.items() if isinstance(c, State))
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
    """Return the number of values of one token in one layer."""
    if isinstance(cache, Attention):
        return cache.kv_heads * (cache.head_size + cache.value_size)
    if isinstance(cache, Latent):
        return ceil(Fraction(cache.width, cache.every)) + 2 * cache.indexer
    if isinstance(cache, Indexer):
        return cache.width
    return 2 * cache.kv_heads * cache.head_size if isinstance(cache, Cross) else 0


def state_size(cache: State, value: int) -> int:
    """Return the bytes of one layer's state; delta nets and Mamba 2 keep their recurrence in 32 bits."""
    recurrent = 4 if cache.kind in WIDE_STATES else value
    return sum(t.parts * t.size * (recurrent if t.recurrent else value) for t in cache.tensors)


def estimate(shape: Shape, weights: Weights, load: Load, backend: str) -> Fit:
    """Return the estimate for the fullest device; ``backend`` is a document's (``vllm``, ``mlx`` …)."""
    paged = backends.of(backend).on_cards
    if (backends.of(backend).text_only or load.text_only) and shape.tower:
        weights, shape = _without_tower(shape, weights)
    terms = [_weights(shape, weights, load, paged)]
    terms += _paged(shape, load) if paged else _growing(shape, load)
    terms += rest.terms(shape, load, terms[0].amount.likely, paged=paged)
    return Fit(backend, load, tuple(terms))


def longest(shape: Shape, whole: Fit, budget: int) -> int:
    """Return the longest context up to that of ``whole`` with a likely total within ``budget`` bytes; 0 where
    not even the shortest fits.
    """
    context, likely = whole.load.context, partial(_likely, shape, whole)
    if whole.total.likely <= budget:
        return context
    least = min(SHORTEST, context)
    if likely(least) > budget:
        return 0
    return least + bisect_right(range(least, context), budget, key=likely) - 1


def _likely(shape: Shape, whole: Fit, context: int) -> int:
    """Return the likely bytes of everything with another context; no term is made for a step of a search."""
    load, paged = replace(whole.load, context=context), backends.of(whole.backend).on_cards
    weights, *others = (t for t in whole.terms if t.part not in CACHES)
    if rest.grows(shape, load) and weights.why.kind is not TermReason.MEASURED:
        others = rest.terms(shape, load, weights.amount.likely, paged=paged)
    caches = sum(int(size * whole.scale) for size in _cached(shape, load, paged=paged))
    return caches + sum(t.amount.likely for t in (weights, *others))


def _weights(shape: Shape, weights: Weights, load: Load, paged: bool) -> Term:
    """Return the part of the published weights that one device loads."""
    plain = BYTES.get(shape.dtype or "", 2)
    main, drafts = sizes(shape.parts, shape.scheme, plain), sizes(shape.drafts, shape.scheme, plain)
    shares = [_share(shape, replace(load, context=0, sequences=1, slots=None), plain) if paged else 1.0]
    notes = []
    if not load.drafts and drafts:
        published = weights.amount.likely
        loaded = 1 - weights.drafts / published if weights.drafts is not None else main / (main + drafts)
        shares.append(loaded)
        notes.append(Reason(TermReason.DRAFTS_LEFT_OUT))
    cast = _cast(shape, weights, load) if paged else 1.0
    if cast != 1:
        shares.append(cast)
        notes.append(Reason(TermReason.CAST, dtype=computed(shape, load)))
    if load.online_bits is not None and shape.scheme is None:
        online = Scheme("online", Fraction(load.online_bits))
        shares.append(sizes(shape.parts, online, plain) / max(main, 1))
        notes.append(Reason(TermReason.ONLINE, bits=load.online_bits))
    share = 1.0
    for factor in shares:
        share *= factor
    if paged and padding(shape, load) != 1:
        notes.append(Reason(TermReason.PADDED))
    devices = load.tensor_parallel * load.pipeline_parallel
    if max(devices, load.expert_parallel) > 1:
        notes.append(Reason(TermReason.SHARE, share=shares[0], devices=max(devices, load.expert_parallel)))
    copies = _unfolded(shape, load) if paged and load.device != "cpu" else 0
    if copies:
        notes.append(Reason(TermReason.PROJECTION_TWICE))
    if load.offloaded:
        notes.append(Reason(TermReason.OFFLOADED, size=load.offloaded))
    amount = weights.amount
    if not load.drafts and drafts and weights.drafts is None:  # they may be among the published bytes or not
        amount = replace(amount, high=int(amount.high / shares[1]))
    loaded_bytes = (int(n * share) + copies for n in (amount.low, amount.likely, amount.high))
    scaled = Amount(*(max(size - load.offloaded, 0) for size in loaded_bytes))
    return Term("weights", scaled, Reason(TermReason.WEIGHTS, parts=(weights.why, *notes)))


@lru_cache(maxsize=32)
def _blind(shape: Shape) -> Shape:
    return replace(shape, tower=())


def _without_tower(shape: Shape, weights: Weights) -> tuple[Weights, Shape]:
    plain = BYTES.get(shape.dtype or "", 2)
    size = sizes(shape.tower, shape.scheme, plain)
    published = weights.amount
    amount = Amount(*(max(n - size, 0) for n in (published.low, published.likely, published.high)))
    why = Reason(SizeReason.NO_TOWER, why=weights.why)
    return replace(weights, amount=amount, why=why), _blind(shape)


def _cast(shape: Shape, weights: Weights, load: Load) -> float:
    """Return the factor between the published and the loaded size of a value; 1 for quantised values."""
    if shape.scheme is not None:
        return 1.0
    stored = max(weights.dtypes, key=lambda t: weights.dtypes[t]) if weights.dtypes else None
    before = {"F32": 4, "F16": 2, "BF16": 2}.get(stored or "")
    return value_bytes(shape, load) / (before or BYTES.get(shape.dtype or "", 2))


@lru_cache(maxsize=1024)
def _share(shape: Shape, load: Load, plain: int) -> float:
    """Return the part of all parameters that the fullest device holds."""
    stages = max(load.pipeline_parallel, 1)
    whole = sizes(shape.parts, shape.scheme, plain)
    each = {parts: on_device(shape, parts, load, plain) for parts in {block.parts for block in shape.blocks}}
    layers = sorted((each[block.parts] for block in shape.blocks), reverse=True)
    first = sum(layers[: ceil(len(layers) / stages)])
    beside = on_device(shape, (*shape.around, *shape.tower), load, plain)
    beside += copied_encoder(shape, load) if load.encoder_whole else 0
    return (first + beside) / whole if whole else 1.0


def on_device(shape: Shape, parts: tuple[Part, ...], load: Load, plain: int) -> int:
    """Return the bytes of these parameters on one of the devices that share them."""
    devices, wide = max(load.tensor_parallel, 1), max(load.tensor_parallel, load.expert_parallel, 1)
    return sum(
        ceil(sizes((p,), shape.scheme, plain) * padded / min(n, p.most or n))
        for p in parts
        for n, padded in ((wide, padding(shape, load)) if p.role == "experts" else (devices, 1),)
    )


def padding(shape: Shape, load: Load) -> Fraction:
    """Return the factor by which kernels of cards pad experts in MXFP4 to whole tiles; 1 for others."""
    if shape.scheme is None or shape.scheme.name != "mxfp4" or load.device not in rest.ON_CARDS:
        return Fraction(1)
    hopper = load.device == "cuda" and load.capability == 90
    tiles = TILES["hopper" if hopper else load.device]
    parted = load.tensor_parallel if load.expert_parallel == 1 else 1
    width = Fraction(shape.expert_width, max(parted, 1)) or Fraction(1)
    sides = (width, Fraction(shape.hidden))
    return prod((ceil(s / tile) * tile / s for s, tile in zip(sides, tiles, strict=True)), start=Fraction(1))


def copied_encoder(shape: Shape, load: Load) -> int:
    """Return the bytes of a whole encoder beyond the part of it that one device has anyway."""
    plain = BYTES.get(shape.dtype or "", 2)
    return sizes(shape.tower, shape.scheme, plain) - on_device(shape, shape.tower, load, plain)


def _unfolded(shape: Shape, load: Load) -> int:
    values = sum(c.unfolded * number for c, number in shape.caches.items() if isinstance(c, Latent))
    each = values * value_bytes(shape, load)
    return each // (max(load.tensor_parallel, 1) * max(load.pipeline_parallel, 1))


def _cached(shape: Shape, load: Load, *, paged: bool) -> tuple[int, int]:
    """Return the likely bytes of all sequences: keys and values, and states; one block stays empty."""
    if not paged:
        arrays = sequence(shape, load)
        return arrays[0].likely * load.sequences, arrays[1].likely * load.sequences
    pool, flight, tokens = pages.pool(shape, load), pages.in_flight(load), pages.kept(load)
    keys, states = (pool.blocks(tokens, flight, states=some) * load.sequences for some in (False, True))
    return pool.block * (keys + 1) if keys else 0, pool.block * (states + (not keys)) if states else 0


def _paged(shape: Shape, load: Load) -> list[Term]:
    """Return keys and values, and states, in blocks of vLLM's pool."""
    pool, flight, tokens = pages.pool(shape, load), pages.in_flight(load), pages.kept(load)
    keys, states = _cached(shape, load, paged=True)
    why = Reason(
        TermReason.PAGES,
        sequences=load.sequences,
        tokens=load.context,
        dtype=kv_name(shape, load),
        each=pool.sequence(tokens, flight) / max(load.context, 1),
        kinds=_kinds(shape),
    )
    terms = [Term("kv cache", _sure(shape, load, keys), why)] if keys else []
    if states:
        count = pool.blocks(tokens, flight, states=True)
        why = Reason(TermReason.STATE_PAGES, sequences=load.sequences, count=count, size=pool.block)
        terms.append(Term("states", _sure(shape, load, states), why))
    return terms


def _kinds(shape: Shape) -> tuple[str, ...]:
    return tuple(f"{n} {kind}" for kind, n in shape.kinds().items())


def _sure(shape: Shape, load: Load, size: int) -> Amount:
    """Return an exact amount, or a range where it was compared with no engine or a kernel is open."""
    dtype = kv_name(shape, load)
    if any(pages.form_is_open(c, dtype, load) for c in shape.caches):
        whole = [_pool_of(shape, replace(load, capability=capability)) for capability in CAPABILITIES]
        here = _pool_of(shape, load) or 1
        return Amount(size * min(whole) // here, size, size * max(whole) // here)
    odd = any(isinstance(c, Indexer) or (isinstance(c, Latent) and _is_odd(c, load)) for c in shape.caches)
    return Amount.about(size, UNPROVED) if odd else Amount.exactly(size)


def _is_odd(cache: Latent, load: Load) -> bool:
    return load.device != "cuda" and (cache.sparse or cache.packed > 0)


def _pool_of(shape: Shape, load: Load) -> int:
    """Return the bytes of one sequence in vLLM's pool."""
    return pages.pool(shape, load).sequence(pages.kept(load), pages.in_flight(load))


def _growing(shape: Shape, load: Load) -> list[Term]:
    keys, states = sequence(shape, load)
    terms = []
    if keys.likely:
        why = Reason(
            TermReason.ARRAYS, sequences=load.sequences, tokens=load.context, dtype=computed(shape, load),
            kinds=_kinds(shape),
        )  # fmt: skip
        terms.append(Term("kv cache", keys.times(load.sequences), why))
    if states.likely:
        why = Reason(TermReason.STATE_ARRAYS, sequences=load.sequences, size=states.likely)
        terms.append(Term("states", states.times(load.sequences), why))
    return terms
