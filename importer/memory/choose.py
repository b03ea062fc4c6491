"""The fit on a device: context length, dtype, number of cards, share of their memory.

The rules, in this order:

1. The user's values are inputs and stay.
2. ``dtype`` is the checkpoint's, unless the device does not support it or vLLM rejects it.
3. The fewest cards that hold the model with its whole context are used: tensor parallelism as far as heads
   and blocks divide, pipeline stages for the rest.
4. vLLM fills its default share of a card, and a larger share only where the context would be too short.
5. The vendor's context stays where it fits; else the longest context that fits. Where not even a short one
   fits, nothing changes, and the reasons name the missing bytes and devices that would hold the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from importer.hub.snapshot import Snapshot
from importer.memory.devices import GIB, Device
from importer.memory.estimate_types import Amount, Fit, Unknown
from importer.memory.parallelism import (
    CACHE,
    ON_CARDS,
    PIPELINE,
    SHARE,
    TENSOR,
    FitRequest,
    LoadCase,
    Placed,
    cache_bytes,
)
from importer.memory.shape import Shape
from importer.memory.weights import Weights
from importer.messages import render
from importer.reasons import Reason
from importer.signals.architecture import FILE, config_of, model_types
from importer.signals.evidence import Evidence, Rule, Source, warning

Verdict = Literal["fits", "shortened", "too-large", "unknown"]
CONTEXT = "max_model_len"
SHORTEST = 1024  # tokens; a shorter context is of no use
STEPS = ((4096, 1024), (0, 256))  # from this number of tokens on, a context is a multiple of the second
SEQUENCES = 8  # that a processor's KV space holds at most
CPU_PART = 8  # the space is at most the memory divided by this, and at least one sequence
MIB = 2**20
# Model types that vLLM rejects in float16 (_FLOAT16_NOT_SUPPORTED_MODELS in its config/model.py).
OVERFLOWS = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})


class AmountReason(StrEnum):
    """Reasons with amounts of memory on a device."""

    OF_NODES = "of-nodes"
    OF_ONE = "of-one"
    OF_SEVERAL = "of-several"
    CACHE = "cache"
    REST = "rest"
    WEIGHTS = "weights"


def gib(size: float) -> str:
    """Return bytes as text, such as ``15.3 GiB``; less than half a GiB in MiB, less than a MiB in KiB."""
    if size >= GIB / 2:
        return f"{size / GIB:.1f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def usable(device: Device, placed: Placed) -> Reason:
    """Return the usable memory, such as ``21.6 GiB of rtx4090`` or ``4 of 8 h100-80g, 72.8 GiB of each,``."""
    cards, budget = placed.split.cards, gib(placed.budget)
    if cards == device.count == 1:
        return Reason(AmountReason.OF_ONE, budget=budget, device=device.name)
    of = device.count if device.count > cards else None
    kind = AmountReason.OF_NODES if device.kind == "cpu" else AmountReason.OF_SEVERAL
    return Reason(kind, cards=cards, of=of, device=device.name, budget=budget)


def parts(fit: Fit) -> tuple[Reason, ...]:
    """Return the parts, such as ``weights 15.3 GiB, KV cache 144 KiB per token, the rest 1.9 to 4.2 GiB``."""
    weights, cache = fit.term("weights"), fit.term("kv cache")
    rest = Amount.sum(t.amount for t in fit.terms if t not in {weights, cache})
    reasons = []
    if weights:
        reasons.append(Reason(AmountReason.WEIGHTS, size=gib(weights.amount.likely)))
    if cache:
        each = gib(cache.amount.likely / max(1, fit.load.context))
        reasons.append(Reason(AmountReason.CACHE, size=each))
    most = gib(max(rest.high, GIB))
    return (*reasons, Reason(AmountReason.REST, likely=rest.likely / GIB, high=most))


class FitReason(StrEnum):
    """Reasons for the settings of a fit."""

    HOLDS = "holds"
    WOULD_HOLD_ALL = "would-hold-all"
    TOO_LARGE = "too-large"
    WOULD_HOLD = "would-hold"
    QUANTISED_IS_SMALLER = "quantised-is-smaller"
    TENSOR_SPLIT = "tensor-split"
    PIPELINE_SPLIT = "pipeline-split"
    SHARE = "share"
    LARGER_SHARE = "larger-share"
    CACHE = "cache"
    NO_BFLOAT16 = "no-bfloat16"
    NO_BFLOAT16_OVERFLOWS = "no-bfloat16-overflows"
    HALVED = "halved"
    OVERFLOWS = "overflows"
    STORED = "stored"
    NOT_KNOWN = "not-known"
    NO_LENGTH = "no-length"


@dataclass(frozen=True, slots=True)
class Choice:
    """The settings for a device, as evidence and with a reason.

    ``requested``  the context before the fit.
    ``fit``        the estimate with these settings, or with the shortest context for a too large model.
    ``pool``       of vLLM's cache: bytes of a ``block``, and ``blocks`` of one full sequence.
    ``holds``      named devices that would hold the model with the whole context.
    """

    device: Device
    verdict: Verdict
    reason: Reason
    evidence: tuple[Evidence, ...] = ()
    requested: int | None = None
    weights: Weights | None = None
    placed: Placed | None = None
    fit: Fit | None = None
    pool: Mapping[str, int] | None = None
    holds: tuple[Device, ...] = ()

    @property
    def message(self) -> str:
        """Return the reason in one line."""
        return render(self.reason)

    def to_json(self) -> dict[str, Any]:
        """Return the choice as receipts hold it."""
        data: dict[str, Any] = {
            "device": self.device.to_json(),
            "verdict": self.verdict,
            "message": self.message,
            "wanted": self.requested,
            "chosen": {e.key: e.value for e in self.evidence if e.rule is Rule.FIT},
        }
        if self.weights is not None:
            data["weights"] = self.weights.to_json()
        if self.placed is not None and self.fit is not None:
            data |= {
                "cards": self.placed.split.cards,
                "budget": self.placed.budget,
                "spare": self.placed.spare,
                "binding": self.placed.longest.binding,
                "estimate": self.fit.to_json(),
            }
        if self.pool is not None:
            data["pool"] = dict(self.pool)
        if self.holds:
            data["would_hold"] = [device.label for device in self.holds]
        return data


def choose(
    snapshot: Snapshot,
    shape: Shape | Unknown,
    weights: Weights | Unknown,
    device: Device,
    backend: str,
    request: FitRequest,
) -> Choice:
    """Return the choice for a repository on ``device``; the device's memory must be known."""
    dtype = None if isinstance(shape, Unknown) else _dtype(snapshot, shape, device, backend, request)
    facts = () if dtype is None else (dtype,)
    if isinstance(shape, Unknown):
        return Choice(device, "unknown", _unknown(device, shape.reason))
    if isinstance(weights, Unknown):
        return Choice(device, "unknown", _unknown(device, weights.reason), facts)
    context = request.count(CONTEXT) or shape.context
    if context is None:
        return Choice(device, "unknown", _unknown(device, Reason(FitReason.NO_LENGTH)), facts)
    dtype_name = request.get("dtype") if dtype is None else dtype.value
    case = LoadCase(
        config_of(snapshot), shape, weights, device, backend, request, context, str(dtype_name or "auto")
    )
    placed = case.best()
    if placed.longest.context >= context:
        return _fits(case, placed, facts)
    length = _rounded(placed.longest.context)
    return (
        _shortened(case, placed, length, facts)
        if length >= min(SHORTEST, context)
        else _too_large(case, facts)
    )


def _fits(case: LoadCase, placed: Placed, dtype_facts: tuple[Evidence, ...]) -> Choice:
    fit = case.fit(case.context, placed.split)
    reason = _holds(case, placed, fit, case.context)
    facts = [*dtype_facts, *_settings(case, placed, fit)]
    if not case.request.is_fixed(CONTEXT) and case.request.get(CONTEXT) is not None:
        facts.append(Evidence(Rule.FITS, CONTEXT, case.context, Source.FIT, reason))
    pool = case.pool(fit)
    return Choice(case.device, "fits", reason, tuple(facts), case.context, case.weights, placed, fit, pool)


def _shortened(case: LoadCase, placed: Placed, length: int, dtype_facts: tuple[Evidence, ...]) -> Choice:
    fit = case.fit(length, placed.split)
    reason = _holds(case, placed, fit, length)
    facts = [
        *dtype_facts,
        *_settings(case, placed, fit),
        Evidence(Rule.FIT, CONTEXT, length, Source.FIT, reason),
    ]
    holds = case.would_hold()
    devices = tuple(device.label for device in holds)
    all_of_it = Reason(FitReason.WOULD_HOLD_ALL, held=reason, devices=devices, tokens=case.context)
    return Choice(
        case.device, "shortened", all_of_it if holds else reason, tuple(facts), case.context, case.weights,
        placed, fit, case.pool(fit), holds,
    )  # fmt: skip


def _too_large(case: LoadCase, dtype_facts: tuple[Evidence, ...]) -> Choice:
    placed = case.widest()
    fit, whole = (case.fit(n, placed.split) for n in (min(SHORTEST, case.context), case.context))
    over = fit.total.likely + placed.spare - placed.budget
    holds = case.would_hold()
    devices = tuple(device.label for device in holds)
    ways = [Reason(FitReason.WOULD_HOLD, devices=devices, tokens=case.context)] if holds else []
    ways += [] if case.shape.quantisation else [Reason(FitReason.QUANTISED_IS_SMALLER)]
    reason = warning(
        Reason(
            FitReason.TOO_LARGE, device=case.device.label, parts=parts(whole), each=placed.split.cards > 1,
            over=gib(over), budget=gib(placed.budget), ways=tuple(ways),
        )
    )  # fmt: skip
    value = None if case.request.is_fixed(CONTEXT) else case.request.get(CONTEXT)
    is_named = case.request.get(CONTEXT) is not None  # without a named context none is written
    facts = (*dtype_facts, *([Evidence(Rule.FITS, CONTEXT, value, Source.FIT, reason)] if is_named else ()))
    return Choice(
        case.device, "too-large", reason, facts, case.context, case.weights, placed, fit, holds=holds
    )


def _holds(case: LoadCase, placed: Placed, fit: Fit, tokens: int) -> Reason:
    return Reason(FitReason.HOLDS, usable=usable(case.device, placed), tokens=tokens, parts=parts(fit))


def _settings(case: LoadCase, placed: Placed, fit: Fit) -> list[Evidence]:
    """Return the settings of cards and memory that the user has not fixed.

    SGLang chooses its own share of a card; engines on MLX have no such settings.
    """
    made = _cards(case, placed, fit) if case.backend in ON_CARDS else ()
    if case.backend == "sglang":
        made = (e for e in made if e.key == TENSOR)
    return [e for e in made if not case.request.is_fixed(e.key)]


def _cards(case: LoadCase, placed: Placed, fit: Fit) -> Iterator[Evidence]:
    """Yield the number of cards and the share of each, or the cache's bytes of a processor's memory."""
    split, device = placed.split, case.device
    of = device.count if device.count > split.cards else None
    if split.tensor > 1:
        why = Reason(
            FitReason.TENSOR_SPLIT, cards=split.cards, of=of, device=device.name, heads=case.shape.heads
        )
        yield Evidence(Rule.FIT, TENSOR, split.tensor, Source.FIT, why)
    if split.pipeline > 1:
        why = Reason(FitReason.PIPELINE_SPLIT, cards=split.cards, of=of, device=device.name)
        yield Evidence(Rule.FIT, PIPELINE, split.pipeline, Source.FIT, why)
    if device.is_card:
        kind = FitReason.LARGER_SHARE if placed.share > device.share else FitReason.SHARE
        why = Reason(
            kind, budget=gib(placed.budget), memory=gib(device.memory or 0), device=device.name,
            usual=device.share,
        )  # fmt: skip
        yield Evidence(Rule.FIT, SHARE, placed.share, Source.FIT, why)
    else:
        yield _cpu_cache(case, placed, fit)


def _cpu_cache(case: LoadCase, placed: Placed, fit: Fit) -> Evidence:
    """Return the size of the cache on processors: vLLM's default needs nearly all memory to be free."""
    one = cache_bytes(fit)
    room = max(one, placed.budget - placed.spare - fit.total.likely + one)
    size = min(room, SEQUENCES * one, max(one, (case.device.memory or 0) // CPU_PART))
    size = -(-size // MIB) * MIB
    count = size // one if one else 0
    reason = Reason(FitReason.CACHE, count=max(1, count), tokens=fit.load.context)
    return Evidence(Rule.FIT, CACHE, size, Source.FIT, reason)


def _dtype(
    snapshot: Snapshot, shape: Shape, device: Device, backend: str, request: FitRequest
) -> Evidence | None:
    """Return the checkpoint's dtype, or the nearest that the device supports and vLLM accepts."""
    if backend != "vllm" or shape.dtype is None or request.is_fixed("dtype"):
        return None
    overflows = not OVERFLOWS.isdisjoint(model_types(snapshot))
    stored, short = shape.dtype, {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    if stored == "bfloat16" and "bf16" not in device.native:
        if overflows:
            reason = Reason(FitReason.NO_BFLOAT16_OVERFLOWS, device=device.name)
            return Evidence(Rule.FIT, "dtype", "float32", Source.FIT, reason)
        reason = Reason(FitReason.NO_BFLOAT16, device=device.name)
        return Evidence(Rule.FIT, "dtype", "float16", Source.FIT, reason)
    if stored == "float32" or (stored == "float16" and overflows):
        usual = "bfloat16" if "bf16" in device.native else "float32" if overflows else "float16"
        kind = FitReason.HALVED if stored == "float32" else FitReason.OVERFLOWS
        reason = Reason(kind, stored=stored, usual=usual)
        return Evidence(Rule.FIT, "dtype", usual, Source.FIT, reason)
    if stored in short:
        reason = Reason(FitReason.STORED, file=FILE, stored=stored)
        return Evidence(Rule.CONFIG, "dtype", stored, FILE, reason, stored)
    return None


def _rounded(context: int) -> int:
    step = next(step for least, step in STEPS if context >= least)
    return context // step * step


def _unknown(device: Device, why: Reason) -> Reason:
    return Reason(FitReason.NOT_KNOWN, device=device.label, why=why)
