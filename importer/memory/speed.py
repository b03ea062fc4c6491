"""The least time of one step of decoding, from the bandwidth of memory and links: a bound, not a measurement.

A step reads the weights that its tokens visit and the caches of its sequences once, and adds up between
devices after attention and after the feed-forward part of each layer. It compares layouts with each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from importer.memory.config_keys import Keys
from importer.memory.estimate_types import Fit
from importer.memory.experts import chosen, count
from importer.memory.layers import Attention, Cache, Latent
from importer.memory.parallelism import LoadCase, cache_bytes, spread
from importer.memory.plans import Split
from importer.memory.quantised import sizes
from importer.signals.architecture import text_config

OPERATIONS = 250  # of 16 bits that a card calculates while it reads one byte; 150 to 300 on cards of today
PCIE = 32_000_000_000  # bytes a second between cards without links of their own
# Seconds until the first byte of a sum over cards is there: with links between them, and over PCIe.
FAST, SLOW = 10e-6, 40e-6
SUMS = 2  # of each layer


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds of one step, and the tokens a second of all sequences of all copies together."""

    seconds: float
    rate: float


def step(case: LoadCase, split: Split, sequences: int, tokens: int) -> Step | None:
    """Return the bound for ``sequences`` of ``tokens`` in all copies; ``None`` without a known bandwidth."""
    bandwidth = case.device.bandwidth
    if bandwidth is None:
        return None
    each = max(-(-sequences // split.copies), 1)
    fit = case.fit(tokens, split)
    dense, experts = _weights(case, fit, split)
    read = dense + experts * _visited(case, each * (split.data if split.experts else 1))
    read += each * cache_bytes(fit)
    calculated = _active(case, dense, experts) * each / OPERATIONS
    stage = max(read, calculated) / bandwidth + _talk(case, split, each)
    return Step(stage * split.pipeline, split.copies * each / stage)


def _weights(case: LoadCase, fit: Fit, split: Split) -> tuple[float, float]:
    """Return the bytes on one device: of what every token visits, and of experts."""
    term = fit.term("weights")
    loaded = float(term.amount.likely) if term is not None else 0.0
    plain = 2
    routed = sizes(
        tuple(p for b in case.shape.blocks for p in b.parts if p.role == "experts"), case.shape.scheme, plain
    )
    whole = sizes(case.shape.parts, case.shape.scheme, plain)
    if not routed or not whole:
        return loaded, 0.0
    over = (split.tensor * split.data if split.experts else split.tensor) * split.pipeline
    experts = min(case.weights.amount.likely * routed / whole / over, loaded)
    return loaded - experts, experts


def _visited(case: LoadCase, tokens: int) -> float:
    """Return the part of the experts that ``tokens`` visit, spread evenly."""
    keys = Keys.of(text_config(case.config))
    number, visits = count(keys), chosen(keys)
    return 1 - (1 - min(visits / number, 1)) ** max(tokens, 1) if number and visits else 1.0


def _active(case: LoadCase, dense: float, experts: float) -> float:
    """Return twice the bytes that one token visits: two operations for each value of 16 bits."""
    return dense + experts * _visited(case, 1)


def _wide(cached: Cache) -> int:
    """Return the values of all heads' queries of one token in one layer."""
    if isinstance(cached, Latent):
        return cached.heads * cached.width
    return cached.heads * cached.head_size if isinstance(cached, Attention) else 0


def _talk(case: LoadCase, split: Split, each: int) -> float:
    """Return the seconds between devices of one stage: sums of tensor parallelism, tokens of experts."""
    link = case.device.link or PCIE
    wait = FAST if case.device.link else SLOW
    layers = -(-len(case.shape.blocks) // split.pipeline)
    size = each * case.shape.hidden * 2
    seconds = 0.0
    if split.tensor > 1:
        seconds += SUMS * layers * (wait + 2 * size * (split.tensor - 1) / split.tensor / link)
    if split.parts > 1:  # queries of all heads go to every part, and results come back
        wide = sum(max((_wide(c) for c in layer), default=0) for layer in case.shape.layers)
        seconds += SUMS * layers * wait + SUMS * 2 * each * wide / split.pipeline / link
    if split.experts and split.data > 1:  # every copy's tokens go to every other copy, and back
        between = PCIE if spread(case.device, split) else link
        seconds += SUMS * layers * (wait + size * (split.data - 1) / between)
    return seconds + (wait + size / PCIE if split.pipeline > 1 else 0.0)
