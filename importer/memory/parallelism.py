"""Placement of a model on a device: number of cards, share of each, and the longest context."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from importer.hub.snapshot import whole
from importer.memory import pages, sparse
from importer.memory.devices import Device, known
from importer.memory.estimate import estimate, longest
from importer.memory.estimate_types import Fit, Load, Longest
from importer.memory.layers import Attention, Cross, State
from importer.memory.shape import Shape
from importer.memory.weights import Weights
from importer.signals.architecture import text_config

WIDTHS = (
    "intermediate_size", "ffn_hidden_size", "moe_intermediate_size", "shared_expert_intermediate_size",
    "expert_ffn_hidden_size",
)  # fmt: skip
MOST_SIDES = 16  # of a block in which weights share a scale; real ones have two
# Shares of a card; the second is tried where the default is at least the first.
USUAL, FULLER_SHARE = 0.9, 0.95
ON_CARDS = ("vllm", "sglang")  # engines that share a model over NVIDIA's cards
TENSOR, PIPELINE = "tensor_parallel_size", "engine_args.pipeline_parallel_size"
CACHES = {"kv cache", "states"}
SHARE, CACHE = "gpu_memory_utilization", "engine_args.kv_cache_memory_bytes"


@dataclass(frozen=True, slots=True)
class Split:
    """``tensor`` cards for each stage, ``pipeline`` stages."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def cards(self) -> int:
        """Return the number of cards."""
        return self.tensor * self.pipeline


def splits(config: Mapping[str, Any], shape: Shape, cards: int) -> Iterator[Split]:
    """Yield splits from one card to all, in doubling numbers, as wide as heads and blocks divide."""
    numbers = dict.fromkeys([*(2**n for n in range(cards.bit_length())), cards])
    for number in numbers:
        if number <= cards:
            wide = max(n for n in range(1, number + 1) if number % n == 0 and divides(config, shape, n))
            if number // wide <= len(shape.layers):
                yield Split(wide, number // wide)


def divides(config: Mapping[str, Any], shape: Shape, number: int) -> bool:
    """Return whether vLLM can spread every layer over ``number`` cards.

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
    block = _block(config)
    widths = [w for key in WIDTHS if (w := whole(text_config(config).get(key), 1))]
    return block is None or all(w % (number * block) == 0 for w in widths if w % block == 0)


def _block(config: Mapping[str, Any]) -> int | None:
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


@dataclass(frozen=True, slots=True)
class FitRequest:
    """The values decided so far, by key, and the keys that the user fixed."""

    values: Mapping[str, Any]
    fixed: Container[str] = ()

    def get(self, key: str) -> Any:
        """Return the value under a dotted key, set under that key or inside its map."""
        if key in self.values:
            return self.values[key]
        head, _, rest = key.partition(".")
        inner = self.get(head) if rest else None
        return inner.get(rest) if isinstance(inner, Mapping) else None

    def count(self, key: str) -> int | None:
        """Return a whole number above zero."""
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def is_fixed(self, key: str) -> bool:
        """Return whether the user fixed the key or the map that holds it."""
        return key in self.fixed or key.partition(".")[0] in self.fixed


@dataclass(frozen=True, slots=True)
class Placed:
    """One way to place a model: its split, the share of each card, and the longest context with them.

    ``budget`` is the bytes of one card that may be filled; the likely total keeps ``spare`` of them free.
    """

    split: Split
    share: float
    budget: int
    spare: int
    longest: Longest


@dataclass(frozen=True, slots=True)
class LoadCase:
    """A model, a device and the requested settings; ``dtype`` is the engine's argument."""

    config: Mapping[str, Any]
    shape: Shape
    weights: Weights
    device: Device
    backend: str
    request: FitRequest
    context: int
    dtype: str = "auto"
    _fits: dict[tuple[int, Split], Fit] = field(default_factory=dict, init=False, repr=False, compare=False)

    def best(self) -> Placed:
        """Return the first placement with the whole context, else the one with the longest.

        Fewer cards come first, and the default share of all cards before a larger one.
        """
        ways: list[Placed] = []
        for share in self._shares():
            for split in self._splits():
                ways.append(self._placed(split, share))
                if ways[-1].longest.context >= self.context:
                    return ways[-1]
        return max(ways, key=lambda way: way.longest.context)  # of equal ones the first

    def widest(self) -> Placed:
        """Return the placement on all cards with the default share of each."""
        return self._placed(list(self._splits())[-1], self._shares()[0])

    def fit(self, context: int, split: Split) -> Fit:
        """Return the estimate at this context."""
        if (context, split) not in self._fits:
            load = self.load(context, split)
            self._fits[context, split] = estimate(self.shape, self.weights, load, self.backend)
        return self._fits[context, split]

    def load(self, context: int, split: Split) -> Load:
        """Return the engine's settings; those that the document leaves open are the engine's defaults."""
        speculation = self.request.get("engine_args.speculative_config")
        drafts = speculation.get("num_speculative_tokens") if isinstance(speculation, Mapping) else 0
        return Load(
            context=context,
            slots=self.request.count("engine_args.max_num_seqs"),
            batched_tokens=self.request.count("engine_args.max_num_batched_tokens"),
            block_size=self.request.count("engine_args.block_size"),
            dtype=self.dtype,
            kv_dtype=str(self.request.get("engine_args.kv_cache_dtype") or "auto"),
            tensor_parallel=split.tensor,
            pipeline_parallel=split.pipeline,
            rotating=self.request.count("engine_args.max_kv_size"),
            drafts=drafts if isinstance(drafts, int) else 0,
            device=self.device.kind,
            memory=self.device.memory,
            capability=sparse.compute(self.device.capability),
            prefix_caching=self.request.get("engine_args.enable_prefix_caching") is not False,
            eager=self.request.get("enforce_eager") is True,
        )

    def pool(self, fit: Fit) -> dict[str, int] | None:
        """Return vLLM's cache: bytes of one block, and the blocks of one full sequence; else ``None``."""
        if self.backend != "vllm":
            return None
        pool = pages.pool(self.shape, fit.load)
        return {"block": pool.block, "blocks": pool.blocks(fit.load.context, pages.in_flight(fit.load))}

    def would_hold(self) -> tuple[Device, ...]:
        """Return named devices that hold the whole context: the fewest cards, and the least total memory."""
        kinds = {"cuda", "rocm"} if self.backend in ON_CARDS else {"metal"}
        free = FitRequest(
            {k: v for k, v in self.request.values.items() if k not in {TENSOR, PIPELINE, SHARE}}
        )
        able = [d for d in known().values() if d.kind in kinds and "bf16" in d.native]
        several = [replace(d, count=n) for d in able for n in (1, 2, 4, 8) if n == 1 or d.share >= USUAL]
        several.sort(key=lambda d: ((d.memory or 0) * d.count, d.count))
        holds = cache(lambda device: replace(self, device=device, request=free).holds_all())
        small = next(filter(holds, several), None)
        few = next(filter(holds, sorted(several, key=lambda d: d.count)), None)
        return tuple(dict.fromkeys(d for d in (few, small) if d is not None))

    def holds_all(self) -> bool:
        """Return whether all cards together, each with its default share, hold the whole context."""
        if self.weights.amount.low > self._budget(self.device.share) * self.device.count:
            return False  # no estimate is required
        split = list(self._splits())[-1]
        whole = self.fit(self.context, split)
        return split.cards == self.device.count and whole.total.likely <= self._room(self.device.share, whole)

    def _placed(self, split: Split, share: float) -> Placed:
        whole = self.fit(self.context, split)
        room = self._room(share, whole)
        context = longest(self.shape, self.weights, whole.load, self.backend, room)
        return Placed(split, share, self._budget(share), spare(whole), context)

    def _splits(self) -> Iterator[Split]:
        tensor, pipeline = self.request.count(TENSOR), self.request.count(PIPELINE)
        if self.backend not in ON_CARDS:
            yield Split()
        elif self.request.is_fixed(TENSOR) or self.request.is_fixed(PIPELINE):
            yield Split(tensor or 1, pipeline or 1)
        else:
            made = splits(self.config, self.shape, self.device.count)
            yield from (split for split in made if self.backend == "vllm" or split.pipeline == 1)

    def _shares(self) -> tuple[float, ...]:
        fixed = self.request.get(SHARE) if self.backend == "vllm" else None
        if isinstance(fixed, int | float) and not isinstance(fixed, bool) and 0 < fixed <= 1:
            return (float(fixed),)
        raised = self.backend == "vllm" and self.device.is_card and USUAL <= self.device.share < FULLER_SHARE
        return (self.device.share, FULLER_SHARE) if raised else (self.device.share,)

    def _budget(self, share: float) -> int:
        return int((self.device.memory or 0) * share)

    def _room(self, share: float, fit: Fit) -> int:
        """Return the bytes for the likely total of one device; fewer where the user limits the cache."""
        room = self._budget(share) - spare(fit)
        space = self.request.count(CACHE) if self.backend == "vllm" else None
        return room if space is None else min(room, fit.total.likely - cache_bytes(fit) + space)


def spare(fit: Fit) -> int:
    """Return half of the difference between high and likely, over the parts that are only estimated."""
    guessed = (t.amount for t in fit.terms if t.part not in CACHES)
    return sum(amount.high - amount.likely for amount in guessed) // 2


def cache_bytes(fit: Fit) -> int:
    """Return the bytes of one full sequence: keys, values and states."""
    return sum(t.amount.likely for t in fit.terms if t.part in CACHES)
