"""Quantised repositories that would hold the request on fewer cards: advice, which nothing has checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from importer.hub.snapshot import Snapshot, listed, mapping
from importer.memory import shape, weights
from importer.memory.estimate_types import Amount
from importer.memory.parallelism import LAYOUT, LoadCase
from importer.memory.planner import Candidate
from importer.memory.plans import PlanReason
from importer.memory.shape import Shape
from importer.reasons import Reason
from importer.signals.quantisation import MLX
from importer.signals.quantised_variants import KEY, LISTED, described

MOST = 3  # repositories that are named
USUAL_GROUP = {MLX: 64}  # values that share a scale, where the list does not name their number
USUAL = 128
COUNTED = 0.8  # of the model's parameters, that the Hub counts at least: a tower may be left out
BLOCKS = ("quantization_config", "quantization", "compression_config")


def named_by_card(case: LoadCase) -> tuple[str, ...] | None:
    """Return the quantised repositories of the model that the card names; ``None`` without any."""
    named = case.request.get(KEY)
    return tuple(map(str, named)) if isinstance(named, list) and named else None


def advice(case: LoadCase, best: Candidate) -> tuple[Reason, ...]:
    """Return the listed repositories that hold the request on fewer cards of the kind than the model.

    ``best`` is the model's plan on all cards of the device. Where it does not hold the request, and no listed
    repository is known to do so, the first of them are named without a claim. The weights of a repository are
    those that the Hub counts, else those of its method and bits.
    """
    rows = [mapping(row) for row in listed(case.request.get(LISTED))]
    if not rows or any(case.request.is_fixed(key) for key in LAYOUT):
        return ()
    counts = [n for n in _counts(case) if n < _least(case, meets=best.meets)]
    fitting = [why for row in rows if (why := _fits(case, row, counts)) is not None][:MOST]
    if fitting or best.meets:
        return tuple(fitting)
    return (Reason(PlanReason.LISTED, names=tuple(described(row) for row in rows[:MOST])),)


def _counts(case: LoadCase) -> Iterator[int]:
    """Yield numbers of cards up to those of the device: powers of two, and all."""
    count = case.device.count
    whole = 1 if not case.device.is_card else count
    yield from dict.fromkeys([*(2**n for n in range(whole.bit_length()) if 2**n <= whole), count])


def _least(case: LoadCase, *, meets: bool) -> int:
    """Return the fewest cards that hold the request; one more than the device has, where all do not."""
    count = case.device.count
    return next((n for n in _counts(case) if _holds(case, n)), count if meets else count + 1)


def _holds(case: LoadCase, count: int) -> bool:
    """Return whether so many cards together hold the whole context and the requested sequences."""
    part = replace(case, device=replace(case.device, count=count))
    if not part.holds_all():
        return False
    split = min((s for s in part.splits() if s.copies == 1), key=lambda s: s.pipeline)
    return part.held(part.tokens, split, part.device.share) >= (part.aim.concurrency or 1)


def _fits(case: LoadCase, row: Mapping[str, Any], counts: list[int]) -> Reason | None:
    """Return the fewest of the counts that hold a listed repository as a reason, else ``None``."""
    sister = _case(case, row) if counts else None
    count = None if sister is None else next((n for n in counts if _holds(sister, n)), None)
    if sister is None or count is None:
        return None
    device = replace(case.device, count=count).label
    return Reason(PlanReason.SISTER_HOLDS, device=device, name=described(row))


def _case(case: LoadCase, row: Mapping[str, Any]) -> LoadCase | None:
    """Return the case with the weights of a listed repository; ``None`` where their size is unknown."""
    method, bits, parameters = row.get("method"), row.get("bits"), mapping(row.get("parameters"))
    block: dict[str, Any] = {"group_size": USUAL_GROUP.get(str(method), USUAL), "bits": bits}
    block |= {} if method == MLX else {"quant_method": method}
    config = {k: v for k, v in case.config.items() if k not in BLOCKS} | {BLOCKS[0]: block}
    name = str(row.get("repo"))
    info = {"config": config, "safetensors": parameters, "safetensors_total": sum(parameters.values())}
    snapshot = Snapshot(name, name, None, (), {}, info)
    read = shape.read(snapshot)
    size = weights.read(snapshot, read)
    if not isinstance(read, Shape) or not isinstance(size, weights.Weights):
        return None
    counted = sum(parameters.values()) >= COUNTED * sum(part.count for part in read.parts)
    if (size.source == "config" and read.scheme is None) or (size.source == "api" and not counted):
        return None  # the width of a parameter is unknown, or these are other weights
    high = replace(size, amount=Amount.exactly(size.amount.high))
    return replace(case, config=config, shape=read, weights=high)
