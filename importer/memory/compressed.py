"""vLLM's memory of DeepSeek V4's caches: packed vectors, states of compressors, groups of unequal pages.

After vLLM 0.32.0 and 0.33.0: ``models/deepseek_v4`` (attention, compressor), ``sparse_swa.py`` and
``_get_packed_kv_cache_groups``. A vector is stored as ``fp8_ds_mla``: its part without rotation in eight
bits, the rotated part in sixteen, scales beside them. The pages of such a model differ in size, so vLLM
puts them one after the other into a block, and no page is padded to another.

Types of vLLM's pool: the page of a layer, the layers of a group, the blocks that all groups share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import groupby
from math import ceil
from typing import Literal

from importer.frozen import frozen
from importer.memory.layers import Latent

Kind = Literal["full", "latent", "window", "chunk", "state", "cross"]


@frozen
class KVPage:
    """One layer's page: ``tokens`` of a block in ``size`` bytes.

    ``reach``  the window, the chunk, the encoder's tokens, or the blocks of a state.
    ``exact``  further values that are equal for layers with one block table.
    """

    kind: Kind
    tokens: int
    size: int
    reach: int = 0
    exact: tuple[int, ...] = ()


@frozen
class Group:
    """Layers with one block table: a sequence has the same number of blocks in all of them."""

    pages: tuple[KVPage, ...]
    _kinds: tuple[KVPage, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note each kind of page once."""
        object.__setattr__(self, "_kinds", tuple(dict.fromkeys(self.pages)))

    @property
    def size(self) -> int:
        """Return the bytes of all its pages in one block."""
        return sum(p.size for p in self.pages)

    def blocks(self, context: int, in_flight: int) -> int:
        """Return the blocks of one sequence of ``context`` tokens, with ``in_flight`` tokens scheduled."""
        return max(_blocks(p, context, in_flight) for p in self._kinds)


@frozen
class Pool:
    """The groups of a model, and the bytes of one block of the pool that they share."""

    groups: tuple[Group, ...]
    block: int

    def blocks(self, context: int, in_flight: int, states: bool | None = None) -> int:
        """Return the blocks of one sequence; ``states`` selects the blocks of states, or the others."""
        chosen = [g for g in self.groups if states is None or (g.pages[0].kind == "state") == states]
        return sum(g.blocks(context, in_flight) for g in chosen)

    def sequence(self, context: int, in_flight: int) -> int:
        """Return the bytes of one sequence in the pool."""
        return self.block * self.blocks(context, in_flight)

    def concurrency(self, memory: int, context: int, in_flight: int) -> float:
        """Return how many full sequences run at once in ``memory`` bytes: vLLM's maximum concurrency."""
        each = self.blocks(context, in_flight)
        return memory // self.block / each if self.block and each else 0.0

    def tokens(self, memory: int, context: int, in_flight: int) -> int:
        """Return the size of the cache in vLLM's log: the tokens of all full sequences in ``memory``."""
        return int(self.concurrency(memory, context, in_flight) * context)


def _blocks(page: KVPage, context: int, in_flight: int) -> int:
    if page.kind == "state":
        return page.reach
    if page.kind == "cross":
        return ceil(page.reach / page.tokens)
    if page.kind == "window":
        return ceil(min(page.reach - 1 + in_flight, context) / page.tokens) + 1
    if page.kind == "chunk":
        return ceil(min(page.reach + in_flight, context) / page.tokens)
    return ceil(context / page.tokens)


BLOCK = 256  # tokens of a block of compressed vectors
NEAR_BLOCK = 64  # tokens of a block of the window
ALIGNED = 576  # bytes; every page is a multiple
INDEXED = 4  # the ratio whose layers select vectors with an indexer, and compress with an overlap
STATE_BLOCK = {4: 4, 128: 8}  # tokens in a block of a compressor's state, by ratio
STATE_VALUE = 4  # bytes; a compressor calculates in 32 bits
SCALED, SCALES = 64, 8  # values with one scale of one byte; the scales of a vector fill so many bytes
INDEX_SCALE = (128, 4)  # one scale of 4 bytes for so many values of an indexer's key


def packed_bytes(width: int, rotated: int) -> int:
    """Return the bytes of a vector of ``width`` values, ``rotated`` of them with rotary positions."""
    plain = max(width - rotated, 0)
    return plain + 2 * rotated + _up(ceil(plain / SCALED), SCALES)


def index_bytes(width: int) -> int:
    """Return the bytes of an indexer's key of ``width`` values, in eight bits with its scales."""
    values, scale = INDEX_SCALE
    return width + ceil(width / values) * scale


def pages(cache: Latent) -> list[KVPage]:
    """Return the pages of one cache: the window, or the vectors, the indexer and their compressors."""
    if cache.window is not None:
        return [KVPage("window", NEAR_BLOCK, _aligned(cache.packed * NEAR_BLOCK), cache.window)]
    stored = BLOCK // cache.every
    overlap = 2 if cache.every == INDEXED else 1
    found = [
        KVPage("latent", BLOCK, _aligned(cache.packed * stored)),
        _state(cache.rank, cache.every, overlap),
    ]
    if cache.indexer:
        keys = KVPage("latent", BLOCK, _aligned(index_bytes(cache.indexer) * stored))
        found = [keys, _state(cache.indexer, cache.every, overlap), *found]
    return found


def _state(width: int, ratio: int, overlap: int) -> KVPage:
    """Return the page of a compressor: values and scores of the tokens that it has not compressed yet."""
    block = STATE_BLOCK.get(ratio, STATE_BLOCK[INDEXED])
    size = _aligned(2 * overlap * width * STATE_VALUE * block)
    return KVPage("window", block, size, overlap * ratio)


def groups(pages: Sequence[KVPage]) -> list[Group]:
    """Return the groups of pages that lie one after the other in a block.

    Layers with one kind, one block and one reach may share a block table. Where such layers repeat a
    pattern of pages of several sizes, the longest pattern sets the layers of a group for all of them.
    """
    buckets = _buckets(pages)
    patterns = [_pattern(bucket) for bucket in buckets]
    least = max((count for count, sizes in patterns if count and sizes > 1), default=0)
    if not least:
        return _by_block(buckets)
    each = _repeats([count for count, _ in patterns if count], least)
    made: list[Group] = []
    for bucket, (count, _) in zip(buckets, patterns, strict=True):
        number = ceil(count / each) if count else 1
        made += _split(bucket, number)
    return made


def _buckets(pages: Sequence[KVPage]) -> list[list[KVPage]]:
    found: dict[tuple[str, int, int], list[KVPage]] = {}
    for page in pages:
        kind = "full" if page.kind in {"full", "latent"} else page.kind
        found.setdefault((kind, page.tokens, page.reach), []).append(page)
    return list(found.values())


def _pattern(bucket: Sequence[KVPage]) -> tuple[int, int]:
    """Return how often a pattern with one page of each size repeats (0 if none does), and its sizes."""
    counts = [len(list(same)) for _, same in groupby(sorted(page.size for page in bucket))]
    return (counts[0] if len(set(counts)) == 1 else 0), len(counts)


def _repeats(counts: Sequence[int], least: int) -> int:
    """Return the layers of a group with the fewest empty places; of several numbers the largest."""
    numbers = range(least, max(counts) + 1)
    return min(reversed(numbers), key=lambda n: sum(-count % n for count in counts))


def _by_block(buckets: Sequence[Sequence[KVPage]]) -> list[Group]:
    """Return the groups where no pattern repeats: windows are split until they fit the others' block."""
    anchor = max(
        max(p.size for p in bucket) if bucket[0].kind == "window" else sum(p.size for p in bucket)
        for bucket in buckets
    )
    made: list[Group] = []
    for bucket in buckets:
        fitting = max(anchor // bucket[0].size, 1)
        made += _split(bucket, ceil(len(bucket) / fitting) if bucket[0].kind == "window" else 1)
    return made


def _split(bucket: Sequence[KVPage], number: int) -> list[Group]:
    """Return so many groups, each with every size of page in turn."""
    if number <= 1:
        return [Group(tuple(bucket))]
    by_size: dict[int, list[KVPage]] = {}
    for page in bucket:
        by_size.setdefault(page.size, []).append(page)
    repeats = list(zip(*by_size.values(), strict=False))
    return [Group(tuple(page for repeat in repeats[i::number] for page in repeat)) for i in range(number)]


def _aligned(size: int) -> int:
    return _up(size, ALIGNED)


def _up(size: int, step: int) -> int:
    return ceil(size / step) * step
