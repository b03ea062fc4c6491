"""vLLM's memory of caches: pages of equal size, groups of layers, one pool of blocks.

After vLLM 0.32.0, ``v1/core/kv_cache_utils.py``: layers of one kind share a block table. Kinds with
different pages get one page size (more tokens in a block, or padding). Each kind is split into groups with
as many layers as the rarest kind has. A block of the pool holds one page of each layer of a group. 0.33.0
has the same rules, in ``kv_cache_config_builder.py`` and ``kv_cache_planning.py`` beside it.

vLLM's memory of sparse MLA: the bytes of a token by the kernel that a card's capability selects.

After vLLM 0.32.0 and 0.33.0: ``platforms/cuda.py`` (order of kernels) and ``mla_attention.py`` (bytes of a
token). A latent vector in eight bits is stored in one of two forms: plain, or packed with its scales and an
unquantised rotary part (``fp8_ds_mla``). FlashMLA has the packed form, FlashInfer on Blackwell the plain one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm
from typing import TYPE_CHECKING

from importer.memory.estimate_types import Load
from importer.memory.layers import Attention, Cache, Cross, Indexer, Latent, State
from importer.memory.shape import Shape

if TYPE_CHECKING:
    from importer.memory.compressed import Group, Kind, KVPage, Pool


BLACKWELL, CONSUMER = 10, 12  # major compute capabilities of data centre and of other cards
PACKED = {"fp8_ds_mla"}
# Bytes of a token in the remaining packed form, for the only width that has it (512 and 64 values).
NVFP4 = {"nvfp4_ds_mla": 352}
SCALE = (128, 4)  # one scale of 4 bytes for so many values
# Model types whose cache vLLM keeps in eight bits by default, on cards of data centres with Blackwell.
EIGHT_BITS_ON_BLACKWELL = frozenset({"glm_moe_dsa"})


def compute_number(capability: str | None) -> int | None:
    """Return a compute capability such as ``9.0`` as the number 90, or ``None`` without one."""
    major, _, minor = (capability or "").partition(".")
    return int(major) * 10 + int(minor) if major.isdecimal() and minor.isdecimal() else None


def default_dtype(model_type: str, load: Load) -> str | None:
    """Return the dtype of keys that vLLM sets for a model type on this card, or ``None`` for its own."""
    on_blackwell = load.device == "cuda" and _major(load) == BLACKWELL
    return "fp8_e4m3" if on_blackwell and model_type in EIGHT_BITS_ON_BLACKWELL else None


def packed_token_bytes(cache: Latent, dtype: str, load: Load) -> int | None:
    """Return the bytes of one token in a packed form, or ``None`` where values lie plainly side by side."""
    if dtype in NVFP4:
        return NVFP4[dtype]
    if dtype in PACKED:
        return _packed(cache)
    if not cache.sparse or load.device != "cuda":
        return None
    major = _major(load)
    if major == CONSUMER and (dtype.startswith("fp8") or load.kv_dtype == "auto"):
        return _packed(cache)
    return _packed(cache) if dtype.startswith("fp8") and major != BLACKWELL else None


def form_is_open(cache: object, dtype: str, load: Load) -> bool:
    """Return whether the form of a sparse layer depends on an unknown capability of the card."""
    sparse = isinstance(cache, Latent) and cache.sparse and dtype not in PACKED and dtype not in NVFP4
    return sparse and load.device == "cuda" and load.capability is None


def _packed(cache: Latent) -> int:
    values, scale = SCALE
    return cache.rank + ceil(cache.rank / values) * scale + 2 * cache.rope


def _major(load: Load) -> int | None:
    return None if load.capability is None else load.capability // 10


BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float": 4, "half": 2}
# vLLM's names for quantised keys and values: bytes of a value, and of the scale for each head and token.
QUANTISED: dict[str, tuple[Fraction, int]] = {
    "int8_per_token_head": (Fraction(1), 4),
    "fp8_per_token_head": (Fraction(1), 4),
    "int4_per_token_head": (Fraction(1, 2), 4),
    "nvfp4": (Fraction(9, 16), 0),  # half a byte, and a scale of one byte for 16 values
    "nvfp4_4over6": (Fraction(9, 16), 0),
}
# Tokens of a block, and tokens of the smallest block of a kernel, by device.
BLOCK = {"cpu": 128, "cuda": 16, "rocm": 16}
KERNEL = {"cpu": 32, "cuda": 16, "rocm": 16}
LATENT_BLOCK = {"cpu": 128, "cuda": 64, "rocm": 1}  # of MLA: FlashMLA's on CUDA
LATENT_ALIGNED = 128  # tokens, beside states
# vLLM's releases since which a rule holds, by the sources of each. A window keeps the tokens of two steps
# (``VllmConfig.max_in_flight_tokens``). States lie at the blocks of a prompt (``mamba_cache_mode: align``),
# with one from inside a prefill (``num_prefill_checkpoint_blocks``). Steps are larger on cards from 160 GiB
# on, and small on GB10 (``get_batch_defaults``). A graph of states needs a block for each sequence
# (``resolve_cudagraph_mode_and_sizes``; 0.18 and 0.19 recorded smaller graphs instead).
TWO_STEPS, ALIGNED, CHECKPOINT, LARGE_STEPS, SMALL_GB10 = (0, 26), (0, 15), (0, 29), (0, 28), (0, 33)
BLOCK_EACH = (0, 20)
IN_PARTS, WHOLE_PROMPT = (0, 8), 32_768  # before, a prompt of so many tokens was one step
A100, GB10 = 80, 121  # compute capabilities
EMITTED = 64  # tokens at whose multiples FlashInfer's prefill of a gated delta net gives its states (0.33.0)


def computed(shape: Shape, load: Load) -> str:
    """Return the dtype of the calculation; engines use bfloat16 for a checkpoint in 32 bits."""
    if load.dtype != "auto":
        return load.dtype
    return "bfloat16" if shape.dtype in {None, "float32"} else str(shape.dtype)


def value_bytes(shape: Shape, load: Load) -> int:
    """Return the bytes of one value of the calculation."""
    return BYTES.get(computed(shape, load), 2)


def kv_name(shape: Shape, load: Load) -> str:
    """Return the dtype of keys and values: the load's, else the checkpoint's, else the calculation's."""
    if load.kv_dtype != "auto":
        return load.kv_dtype
    return shape.kv_dtype or default_dtype(shape.model_type, load) or computed(shape, load)


def kv_bytes(shape: Shape, load: Load) -> tuple[Fraction, int]:
    """Return the bytes of one value and of one scale; each head has one scale for keys and one for values."""
    name = kv_name(shape, load)
    if name in QUANTISED:
        return QUANTISED[name]
    if name in BYTES:
        return Fraction(BYTES[name]), 0
    return (Fraction(1), 0) if name.startswith("fp8") else (Fraction(value_bytes(shape, load)), 0)


def has(load: Load, since: tuple[int, int]) -> bool:
    """Return whether the engine is of this release or a later one; an unknown version is the newest."""
    numbers = _numbers(load.version or "")
    return len(numbers) < 2 or numbers >= since


@lru_cache(maxsize=64)
def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"[0-9]{1,6}", version)[:2])


def in_flight(load: Load) -> int:
    """Return the tokens that may be scheduled and not yet sampled: one step for each stage, on cards two.

    vLLM counts the second one since 0.26 (vllm-project/vllm#47728, #49878).
    """
    batched = load.batched_tokens or batched_default(load)
    if not has(load, TWO_STEPS):
        return batched
    steps = load.pipeline_parallel if load.device == "cpu" else max(2, load.pipeline_parallel)
    return batched * max(steps, 1)


def kept(load: Load) -> int:
    """Return the tokens of one full sequence that one device keeps."""
    return -(-load.context // max(load.context_parallel, 1))


def batched_default(load: Load) -> int:
    """Return the default ``max_num_batched_tokens`` of vLLM's server (``get_batch_defaults``)."""
    if load.device == "cpu":
        return 2048 * load.tensor_parallel * load.pipeline_parallel
    if not has(load, IN_PARTS) and load.context <= WHOLE_PROMPT:
        return max(load.context, 2048)
    if (load.memory or 0) >> 30 >= 160 and has(load, LARGE_STEPS):
        return 16384
    return 8192 if _is_large(load) else 2048


def slots_default(load: Load) -> int:
    """Return the default ``max_num_seqs`` of vLLM's server."""
    if load.device == "cpu":
        return 128 * load.tensor_parallel * load.pipeline_parallel
    return 1024 if _is_large(load) else 256


def _is_large(load: Load) -> bool:
    """Return whether vLLM has the defaults of large cards: neither for an A100 nor, by now, for GB10."""
    small = load.capability == A100 or (load.capability == GB10 and has(load, SMALL_GB10))
    return (load.memory or 0) >> 30 >= 70 and not small


def pool(shape: Shape, load: Load) -> Pool:
    """Return the pool of one device."""
    batched = load.batched_tokens or batched_default(load)
    alike = replace(load, context=0, sequences=1, slots=None, memory=None, batched_tokens=batched)
    return _pool(shape, alike)


@lru_cache(maxsize=1024)  # the same for any context
def _pool(shape: Shape, load: Load) -> Pool:
    from importer.memory.compressed import Pool

    caches = [c for layer in _stage(shape, load) for c in layer]
    caches += shape.drafting if load.drafts else ()
    block = _block(shape, load, caches)
    each = {c: _pages(shape, load, c, block) for c in {*caches}}  # of sixty layers, two or three differ
    pages = [p for c in caches for p in each[c]]
    if not pages:
        return Pool((), 0)
    packed = any(isinstance(c, Latent) and c.packed for c in each)
    groups = _groups(_padded(shape, load, pages, block), packed)
    return Pool(tuple(groups), max(g.size for g in groups))


def _stage(shape: Shape, load: Load) -> tuple[tuple[Cache, ...], ...]:
    """Return the layers of the fullest pipeline stage; the first ones stand for any."""
    count = ceil(len(shape.layers) / max(load.pipeline_parallel, 1))
    return shape.layers[:count]


def _block(shape: Shape, load: Load, caches: Sequence[Cache]) -> int:
    """Return the tokens of a block: the engine's default, or the number that a state's page needs."""
    caches = [*dict.fromkeys(caches)]
    latent = any(isinstance(c, Latent) for c in caches)
    usual = LATENT_BLOCK if latent else BLOCK
    block = load.block_size or usual.get(load.device, 16)
    token = next((_token(shape, load, c) for c in caches if isinstance(c, Attention | Latent)), 0)
    state = max((state_size(shape, load, c) for c in caches if isinstance(c, State)), default=0)
    if not token or not state:
        return block
    aligned = max(KERNEL.get(load.device, 16), block, LATENT_ALIGNED if latent else 0)
    if any(isinstance(c, State) and _emits(c, load) for c in caches):
        aligned = lcm(aligned, EMITTED)
    return max(block, aligned * ceil(state / (aligned * token)))


def _pages(shape: Shape, load: Load, cache: Cache, block: int) -> list[KVPage]:
    from importer.memory.compressed import KVPage

    if isinstance(cache, State):
        states = 1 + load.drafts + (_checkpoints(cache, load) if _aligned(shape, load) else 0)
        return [KVPage("state", block, state_size(shape, load, cache), states)]
    token = _token(shape, load, cache)
    if isinstance(cache, Latent):
        return _latent(cache, token, block)
    if isinstance(cache, Indexer):
        return [KVPage("latent", block, token * block, 0, (cache.width,))]
    heads = _heads(cache.kv_heads, load)
    if isinstance(cache, Cross):
        tokens = max(cache.tokens, load.batched_tokens or batched_default(load))  # what one step may encode
        return [KVPage("cross", block, token * block, tokens, (heads, cache.head_size))]
    exact = (heads, cache.head_size, cache.value_size)
    kernel = KERNEL.get(load.device, 16)
    if cache.window:
        tokens = max(kernel, block // kernel * kernel)
        return [KVPage("window", tokens, token * tokens, cache.window, exact)]
    if cache.chunk:
        return [KVPage("chunk", block, token * block, cache.chunk, exact)]
    return [KVPage("full", block, token * block, 0, exact)]


def _latent(cache: Latent, token: int, block: int) -> list[KVPage]:
    from importer.memory import compressed
    from importer.memory.compressed import KVPage

    if cache.packed:
        return compressed.pages(cache)
    kind: Kind = "window" if cache.window else "latent"
    pages = [KVPage(kind, block, token * block, cache.window or 0, (cache.width,))]
    if cache.indexer:
        width = compressed.index_bytes(cache.indexer)
        pages.append(KVPage("latent", block, width * block, 0, (width,)))
    return pages


def _token(shape: Shape, load: Load, cache: Cache) -> int:
    """Return the bytes of one token in one layer."""
    value, scale = kv_bytes(shape, load)
    if isinstance(cache, Latent):
        return packed_token_bytes(cache, kv_name(shape, load), load) or ceil(cache.width * value)
    if isinstance(cache, Indexer):
        return ceil(cache.width * Fraction(value_bytes(shape, load)))
    if isinstance(cache, Attention):
        wide = cache.head_size + cache.value_size
        return _heads(cache.kv_heads, load) * (ceil(wide * value) + 2 * scale)
    if isinstance(cache, Cross):
        return _heads(cache.kv_heads, load) * ceil(2 * cache.head_size * value)
    return 0


def _heads(kv_heads: int, load: Load) -> int:
    """Return the key heads of one device; with fewer heads than devices, each holds a copy of one."""
    return max(kv_heads // max(load.tensor_parallel, 1), 1)


def state_size(shape: Shape, load: Load, cache: State) -> int:
    """Return the bytes of one layer's state for one sequence on one device.

    A convolution remembers drafts too. On processors vLLM keeps recurrences in 32 bits (with AVX-512 BF16);
    elsewhere in the config's dtype, else in the calculation's.
    """
    value = value_bytes(shape, load)
    named = cache.dtype if load.state_dtype == "auto" else load.state_dtype
    recurrent = BYTES.get(named or "", 4 if load.device == "cpu" else value)
    total = 0
    for tensor in cache.tensors:
        parts = ceil(tensor.parts / max(load.tensor_parallel, 1))
        drafted = tensor.size // tensor.steps * load.drafts if tensor.steps else 0
        total += parts * (tensor.size + drafted) * (recurrent if tensor.recurrent else value)
    return total


def _aligned(shape: Shape, load: Load) -> bool:
    """Return whether states stay at block boundaries for reuse; false for models with states only."""
    attends = any(not isinstance(c, State) for c in shape.caches)
    return load.prefix_caching and attends and has(load, ALIGNED)


def _checkpoints(cache: State, load: Load) -> int:
    """Return the number of states beside the present one: the last block's, and one from inside a prefill."""
    if not has(load, CHECKPOINT):
        return 1
    inside = cache.kind == "mamba2" or (cache.kind == "kimi" and load.device == "cuda")
    return 2 if inside or _emits(cache, load) else 1


def _emits(cache: State, load: Load) -> bool:
    """Return whether a delta net's prefill gives states from inside, to stay for reuse.

    FlashInfer's kernel does, on Hopper and on both kinds of Blackwell (``_resolve_gdn_prefill_backend``); an
    unknown card counts as one of them.
    """
    if cache.kind != "delta" or load.device != "cuda" or not (load.prefix_caching and has(load, CHECKPOINT)):
        return False
    return load.capability is None or load.capability == 90 or load.capability // 10 in (10, 12)


def _padded(shape: Shape, load: Load, pages: list[KVPage], block: int) -> list[KVPage]:
    """Return the pages, with states beside attention padded to its page."""
    token = next((_token(shape, load, c) for c in shape.caches if isinstance(c, Attention | Latent)), 0)
    if not token or not any(p.kind == "state" for p in pages):
        return pages
    padded = {p: replace(p, size=max(p.size, token * block)) if p.kind == "state" else p for p in {*pages}}
    return [padded[p] for p in pages]


def _groups(pages: list[KVPage], packed: bool) -> list[Group]:
    """Return groups that share a block table, with equal numbers of layers unless pages are ``packed``."""
    from importer.memory import compressed
    from importer.memory.compressed import Group

    if packed:
        return compressed.groups(pages)
    if _uniform(pages):
        return [Group(tuple(pages))]
    try:
        evened = _evened(pages)
    except ValueError:  # MLA beside a window: every layer keeps all tokens
        return [Group(tuple(replace(p, kind="full", reach=0) for p in pages))]
    kinds = Counter(evened)
    least, most = min(kinds.values()), max(kinds.values())
    width = most if most < least * 1.5 else least
    return [Group((page,) * width) for page, count in kinds.items() for _ in range(ceil(count / width))]


def _uniform(pages: list[KVPage]) -> bool:
    """Return whether all layers need the same number of blocks, with pages of any size."""
    first = pages[0]
    if all(p.kind in {"full", "latent"} and p.tokens == first.tokens for p in pages):
        return True
    return all((p.kind, p.tokens, p.reach) == (first.kind, first.tokens, first.reach) for p in pages)


def _evened(pages: list[KVPage]) -> list[KVPage]:
    """Return the pages at the size of the largest: more tokens in a block, or padded.

    Raises ValueError for a latent page that does not divide.
    """
    largest = max(p.size for p in pages)
    evened = {}
    for page in {*pages}:
        if page.size and largest % page.size == 0 and page.kind != "state":
            evened[page] = replace(page, size=largest, tokens=page.tokens * (largest // page.size))
        elif page.kind == "latent":
            raise ValueError
        else:
            evened[page] = replace(page, size=largest)
    return [evened[page] for page in pages]
