"""Types of estimates: amounts in bytes with reasons, loads and fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import isqrt
from typing import Literal, TypedDict

from importer.frozen import frozen
from importer.hub.snapshot import listed, mapping
from importer.reasons import Reason, ReasonKind
from importer.sentences import render

Device = Literal["cuda", "rocm", "metal", "cpu"]
Part = Literal["weights", "kv cache", "states", "activations", "graphs", "adapters", "overhead"]
CACHES: frozenset[Part] = frozenset({"kv cache", "states"})


class UnknownReason(ReasonKind):
    """Reasons why an estimate is unknown."""

    CONFIG = "{label} has no config.json that could be read"
    SHAPE_FIELD = "config.json does not say {field}"
    SIZE = "no file says how large the weights are, and {why}"
    TOO_MANY_LAYERS = "config.json says {number} layers, more than {most}"


class SizeReason(ReasonKind):
    """Reasons for the size of the weights: the source of the figure."""

    CONFIG = "config.json describes {parameters:,} parameters in {dtype}; no file says how large they are"
    FILES = "as large as its weight files, with their headers: {count} of them"
    HEADERS = "the headers of its files list {count:,} tensors"
    HUB = "the Hub counts {counts}"
    INDEX = "{file} says total_size: {size}"
    NO_TOWER = "{why}; without the tower of vision or sound"


class TermReason(ReasonKind):
    """Reasons for the size of a part of an estimate."""

    ACTIVATIONS = "{tokens:,} tokens of one step through the widest layer"
    PICTURES = "pictures of {tokens:,} tokens through their encoder"
    SAMPLING = "sampling from {rows:,} rows of {values:,} values"
    ADAPTERS = "places of adapters: {rows:,} rows beside each matrix"
    ARRAYS = "{sequences} x {tokens:,} tokens in {dtype}: {kinds}"
    CAST = "loaded in {dtype}"
    DRAFTS_LEFT_OUT = "without the layers that only draft"
    ENGINE = "the engine itself, with nothing loaded"
    ENGINE_AND_BUFFERS = "the engine itself, and buffers between cards"
    ENGINE_AND_SYSTEM = "the engine itself, and what the system takes of the memory that both share"
    GRAPHS = "recorded CUDA graphs; enforce_eager leaves them out"
    MEASURED = "measured at a start of {engine}, {at}"
    PADDED = "with experts padded to the tiles of their kernel"
    NOT_COUNTED = "{why}; the size of {keys:and} is not known"
    OFFLOADED = "without {size:,} bytes in the machine's memory"
    ONLINE = "quantised to {bits:g} bits while they load"
    PAGES = "{sequences} x {tokens:,} tokens in {dtype}, {each:,.0f} bytes each: {kinds}"
    PROJECTION_TWICE = "with MLA's projection kept twice"
    SHARE = "{share:.0%} of them on each of {devices}"
    STATE_ARRAYS = "{sequences} x {size:,} bytes, however long the sequence"
    STATE_PAGES = "{sequences:sequence|sequences}, {count:page|pages} of {size:,} bytes each"
    WEIGHTS = "{parts:;}"


@frozen
class Unknown:
    """An unknown shape or size, with the reason."""

    reason: Reason


@frozen
class Amount:
    """Bytes: the lower bound, the expected value and the upper bound."""

    low: int
    likely: int
    high: int

    @classmethod
    def exactly(cls, size: int) -> Amount:
        """Return an exact amount."""
        return cls(size, size, size)

    @classmethod
    def about(cls, size: int, share: float) -> Amount:
        """Return an amount that may be off by ``share`` of itself, either way."""
        return cls(int(size * (1 - share)), size, int(size * (1 + share)))

    @classmethod
    def sum(cls, amounts: Iterable[Amount]) -> Amount:
        """Return the sum of amounts whose errors are independent: the squares of their ranges add up."""
        listed = tuple(amounts)
        likely = sum(a.likely for a in listed)
        below = isqrt(sum((a.likely - a.low) ** 2 for a in listed))
        above = isqrt(sum((a.high - a.likely) ** 2 for a in listed))
        return cls(likely - below, likely, likely + above)

    def times(self, factor: float) -> Amount:
        """Return a multiple of the amount."""
        return Amount(*(int(size * factor) for size in (self.low, self.likely, self.high)))

    def to_json(self) -> dict[str, int]:
        """Return the amount as receipts hold it."""
        return {"low": self.low, "likely": self.likely, "high": self.high}


@frozen
class Term:
    """One part of the memory of one device, with the reason for its size."""

    part: Part
    amount: Amount
    why: Reason

    def to_json(self) -> dict[str, object]:
        """Return the term as receipts hold it."""
        return {"part": self.part, **self.amount.to_json(), "why": render(self.why)}


@frozen
class Load:
    """The settings that an engine runs with; a ``None`` is the engine's own default.

    ``context``    tokens of one sequence, prompt and answer (``max_model_len``).
    ``sequences``  number of sequences of that length that fit at once.
    ``slots``      sequences that may run at once (``max_num_seqs``); states and logits are kept for each.
    ``batched_tokens``  tokens of one step (``max_num_batched_tokens``).
    ``dtype``, ``kv_dtype``, ``state_dtype``  in the engine's words; ``auto`` is its default.
    ``expert_parallel``  devices over which whole experts are dealt out; 1 leaves them to ``tensor_parallel``.
    ``context_parallel``  devices of ``tensor_parallel`` that each keep a part of the tokens of a sequence
                   (``decode_context_parallel_size``).
    ``encoder_whole``  whether each device has the whole encoder of pictures (``mm_encoder_tp_mode``).
    ``rotating``   tokens at which mlx starts to overwrite (``max_kv_size``).
    ``drafts``     tokens that MTP heads draft (``num_speculative_tokens``); 0 leaves the heads unloaded.
    ``device``     kind of device; ``memory`` bytes of one device, they decide vLLM's defaults.
    ``capability``  NVIDIA's compute capability (90 for 9.0); it selects kernels, and the form of a cache.
    ``prefix_caching``  whether states stay for reuse (``enable_prefix_caching``).
    ``eager``      without CUDA graphs (``enforce_eager``).
    ``shared``     whether the device and the system share one memory.
    ``pictures``   whether the engine runs the encoder of pictures at its start (``skip_mm_profiling``).
    ``offloaded``  bytes of the weights that each device leaves in the machine's memory.
    ``text_only``  without towers of vision and sound (``language_model_only``).
    ``online_bits``  bits of a plain value that the engine quantises while it loads.
    ``adapters``   ranks of all adapters together (``max_loras`` x ``max_lora_rank``).
    ``captured``   tokens of the largest CUDA graph, where the user sets them.
    ``uncounted``  keys that move memory by an unknown size.
    ``version``    of vLLM, whose rules differ; ``None``: the newest rules, and the range of any.
    """

    context: int
    sequences: int = 1
    slots: int | None = None
    batched_tokens: int | None = None
    block_size: int | None = None
    dtype: str = "auto"
    kv_dtype: str = "auto"
    state_dtype: str = "auto"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_parallel: int = 1
    context_parallel: int = 1
    encoder_whole: bool = False
    rotating: int | None = None
    drafts: int = 0
    device: Device = "cuda"
    memory: int | None = None
    capability: int | None = None
    prefix_caching: bool = True
    eager: bool = False
    shared: bool = False
    pictures: bool = True
    offloaded: int = 0
    text_only: bool = False
    online_bits: float | None = None
    adapters: int = 0
    captured: int | None = None
    uncounted: tuple[str, ...] = ()
    version: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the load as receipts hold it."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


@frozen
class Fit:
    """The estimate of one device under a load; of several devices, the fullest.

    ``scale``  an engine's bytes of a sequence by the counted ones, where they were measured.
    """

    backend: str
    load: Load
    terms: tuple[Term, ...]
    scale: float = 1.0

    @property
    def total(self) -> Amount:
        """Return the sum of all terms."""
        return Amount.sum(t.amount for t in self.terms)

    @property
    def cache(self) -> int:
        """Return the bytes of one full sequence: keys, values and states."""
        return sum(t.amount.likely for t in self.terms if t.part in CACHES)

    @property
    def spare(self) -> int:
        """Return the difference between high and likely, over the parts that are only estimated."""
        guessed = Amount.sum(t.amount for t in self.terms if t.part not in CACHES)
        return guessed.high - guessed.likely

    def term(self, part: Part) -> Term | None:
        """Return the term of this name, or ``None``."""
        return next((t for t in self.terms if t.part == part), None)

    def to_json(self) -> dict[str, object]:
        """Return the estimate as receipts hold it."""
        return {
            "backend": self.backend,
            "load": self.load.to_json(),
            "terms": [t.to_json() for t in self.terms],
            "total": self.total.to_json(),
        }


class Figure(TypedDict):
    """A prediction in bytes or tokens, an engine's figure, and the prediction's relative error."""

    predicted: int
    reported: int
    error: float


def compare(
    fit: Mapping[str, object], context: int | None, weights: int | None, cache: int | None, tokens: int | None
) -> dict[str, Figure]:
    """Return the predictions of a receipt's ``fit`` beside the engine's figures.

    ``weights`` and ``cache`` are bytes on one device, ``tokens`` the capacity of that cache. Each figure has
    ``predicted``, ``reported`` and ``error``, the relative difference. The result is empty where the engine
    ran with another context or reported nothing.
    """
    estimate = mapping(fit.get("estimate"))
    if context is None or not estimate or mapping(estimate["load"])["context"] != context:
        return {}
    likely = {term["part"]: term["likely"] for term in listed(estimate["terms"])}
    pool = mapping(fit.get("pool"))
    figures: dict[str, Figure] = {}
    if weights and "weights" in likely:
        figures["weights"] = beside(likely["weights"], weights)
    if cache and tokens and pool.get("blocks"):
        figures["kv_cache_tokens"] = beside(int(cache // pool["block"] / pool["blocks"] * context), tokens)
    return figures


def beside(predicted: int, reported: int) -> Figure:
    """Return prediction and reported figure with the relative error of the prediction."""
    return {"predicted": predicted, "reported": reported, "error": round(predicted / reported - 1, 4)}
