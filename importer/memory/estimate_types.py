"""What the room gives: amounts in bytes, each with its reason, and the answer for a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

from importer.messages import render
from importer.reasons import Reason

Device = Literal["cuda", "rocm", "metal", "cpu"]
Part = Literal["weights", "kv cache", "states", "activations", "logits", "graphs", "overhead"]


class UnknownReason(StrEnum):
    """What the files do not tell."""

    CONFIG = "config"
    SHAPE_FIELD = "shape-field"
    SIZE = "size"
    TOO_MANY_LAYERS = "too-many-layers"


class SizeReason(StrEnum):
    """Which of the files' words tells how large the weights are."""

    CONFIG = "config"
    CONFIG_WITHOUT_TOWER = "config-without-tower"
    FILES = "files"
    HEADERS = "headers"
    HUB = "hub"
    INDEX = "index"
    NO_TOWER = "no-tower"


class TermReason(StrEnum):
    """Why a part of an estimate is so large."""

    ACTIVATIONS = "activations"
    ARRAYS = "arrays"
    CAST = "cast"
    DRAFTS_LEFT_OUT = "drafts-left-out"
    ENGINE = "engine"
    ENGINE_AND_BUFFERS = "engine-and-buffers"
    GRAPHS = "graphs"
    LOGITS = "logits"
    PAGES = "pages"
    PROJECTION_TWICE = "projection-twice"
    SHARE = "share"
    STATE_ARRAYS = "state-arrays"
    STATE_PAGES = "state-pages"
    WEIGHTS = "weights"


class ContextReason(StrEnum):
    """Why a context is the longest of a budget."""

    FITS = "fits"
    LESS = "less"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Unknown:
    """What cannot be told from the files, and what is missing."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes: the least and the most it may be, and what is expected."""

    low: int
    likely: int
    high: int

    @classmethod
    def exactly(cls, size: int) -> Amount:
        """Return a figure without doubt."""
        return cls(size, size, size)

    @classmethod
    def about(cls, size: int, share: float) -> Amount:
        """Return a figure that may be off by ``share`` of itself, either way."""
        return cls(int(size * (1 - share)), size, int(size * (1 + share)))

    @classmethod
    def sum(cls, amounts: Iterable[Amount]) -> Amount:
        """Return each bound by itself: all low, all likely, all high."""
        listed = tuple(amounts)
        return cls(sum(a.low for a in listed), sum(a.likely for a in listed), sum(a.high for a in listed))

    def to_json(self) -> dict[str, int]:
        """As it stands in receipts."""
        return {"low": self.low, "likely": self.likely, "high": self.high}


@dataclass(frozen=True, slots=True)
class Term:
    """One part of the memory of one device, and in one line why it is so large."""

    part: Part
    amount: Amount
    why: Reason

    def to_json(self) -> dict[str, Any]:
        """As it stands in receipts."""
        return {"part": self.part, **self.amount.to_json(), "why": render(self.why)}


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the engine; a ``None`` is the engine's own default.

    ``context``    tokens of one sequence, prompt and answer (``max_model_len``).
    ``sequences``  how many of that length have to fit at once.
    ``slots``      sequences that may run at once (``max_num_seqs``); states and logits are kept for each.
    ``batched_tokens``  tokens of one step (``max_num_batched_tokens``).
    ``dtype``, ``kv_dtype``, ``state_dtype``  as the engine names them; ``auto`` is what it takes by itself.
    ``rotating``   tokens at which mlx starts to overwrite (``max_kv_size``).
    ``drafts``     tokens that MTP heads draft (``num_speculative_tokens``); 0 leaves the heads unloaded.
    ``device``     what it runs on; ``memory`` bytes of one device, which decides vLLM's defaults.
    ``prefix_caching``  whether states are kept for reuse (``enable_prefix_caching``).
    ``eager``      without CUDA graphs (``enforce_eager``).
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
    rotating: int | None = None
    drafts: int = 0
    device: Device = "cuda"
    memory: int | None = None
    prefix_caching: bool = True
    eager: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it stands in receipts."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Fit:
    """What one device holds under a load; of several devices, the fullest."""

    backend: str
    load: Load
    terms: tuple[Term, ...]

    @property
    def total(self) -> Amount:
        """Return all terms together."""
        return Amount.sum(t.amount for t in self.terms)

    def term(self, part: Part) -> Term | None:
        """Return the term of this name, where the estimate has it."""
        return next((t for t in self.terms if t.part == part), None)

    def to_json(self) -> dict[str, Any]:
        """As it stands in receipts."""
        return {
            "backend": self.backend,
            "load": self.load.to_json(),
            "terms": [t.to_json() for t in self.terms],
            "total": self.total.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest context that a budget holds, and the part that stops it from being longer.

    ``context`` is 0 where not even the shortest fits; ``binding`` is ``None`` where all that was asked fits.
    ``fit`` is the estimate at that context.
    """

    context: int
    binding: Part | None
    why: Reason
    fit: Fit

    def to_json(self) -> dict[str, Any]:
        """As it stands in receipts."""
        why = render(self.why)
        return {"context": self.context, "binding": self.binding, "why": why, "fit": self.fit.to_json()}


def compare(
    fit: Mapping[str, Any], context: int | None, weights: int | None, cache: int | None, tokens: int | None
) -> dict[str, Any]:
    """``fit`` as the receipt has it; bytes of weights and cache on one device, and the tokens in that cache.

    Each figure has ``predicted``, ``reported`` and ``error``, the relative difference. Empty where the engine
    ran with another context than the one that was predicted for, or said nothing.
    """
    estimate = fit.get("estimate") or {}
    if context is None or not estimate or estimate["load"]["context"] != context:
        return {}
    likely = {term["part"]: term["likely"] for term in estimate["terms"]}
    pool = fit.get("pool") or {}
    figures = {}
    if weights and "weights" in likely:
        figures["weights"] = beside(likely["weights"], weights)
    if cache and tokens and pool.get("blocks"):
        figures["kv_cache_tokens"] = beside(int(cache // pool["block"] / pool["blocks"] * context), tokens)
    return figures


def resident(fit: Mapping[str, Any], held: int | None) -> dict[str, Any]:
    """Return the whole estimate beside the bytes that an engine's processes hold; empty where either is
    unknown.
    """
    total = ((fit.get("estimate") or {}).get("total") or {}).get("likely")
    return {"resident": beside(total, held)} if total and held else {}


def beside(predicted: int, reported: int) -> dict[str, Any]:
    """Return two figures, and by how much the prediction is above what was reported."""
    return {"predicted": predicted, "reported": reported, "error": round(predicted / reported - 1, 4)}
