"""The least time of one step, and the most tokens a second, from the bandwidth of a device's memory."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from importer.frozen import frozen
from importer.memory.case import LoadCase
from importer.memory.config_keys import Keys
from importer.memory.estimate_types import Fit
from importer.memory.experts import chosen, count
from importer.memory.parallelism import spread
from importer.memory.plans import Split
from importer.memory.quantised import sizes
from importer.memory.shape import Shape
from importer.signals.architecture import text_config

OPERATIONS = 250  # of 16 bits that a card calculates while it reads one byte; 150 to 300 on cards of today
PCIE = 32_000_000_000  # bytes a second between cards without links of their own
# Seconds until the first byte of a sum over cards is there: with links between them, and over PCIe.
FAST, SLOW = 10e-6, 40e-6
SUMS = 2  # of each layer


@frozen
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
    read += each * fit.cache
    calculated = _active(case, dense, experts) * each / OPERATIONS
    stage = max(read, calculated) / bandwidth + _talk(case, split, each)
    return Step(stage * split.pipeline, split.copies * each / stage)


def _weights(case: LoadCase, fit: Fit, split: Split) -> tuple[float, float]:
    """Return the bytes on one device: of what every token visits, and of experts."""
    term = fit.term("weights")
    loaded = float(term.amount.likely) if term is not None else 0.0
    routed, whole = _routed(case.shape)
    if not routed or not whole:
        return loaded, 0.0
    over = (split.tensor * split.data if split.experts else split.tensor) * split.pipeline
    experts = min(case.weights.amount.likely * routed / whole / over, loaded)
    return loaded - experts, experts


@lru_cache(maxsize=32)
def _routed(shape: Shape) -> tuple[int, int]:
    """Return the bytes of all experts, and of everything."""
    experts = Counter({part: number for part, number in shape.parts.items() if part.role == "experts"})
    return sizes(experts, shape.scheme, 2), sizes(shape.parts, shape.scheme, 2)


def _visited(case: LoadCase, tokens: int) -> float:
    """Return the part of the experts that ``tokens`` visit, spread evenly."""
    keys = Keys.of(text_config(case.config))
    number, visits = count(keys), chosen(keys)
    return 1 - (1 - min(visits / number, 1)) ** max(tokens, 1) if number and visits else 1.0


def _active(case: LoadCase, dense: float, experts: float) -> float:
    """Return twice the bytes that one token visits: two operations for each value of 16 bits."""
    return dense + experts * _visited(case, 1)


def _talk(case: LoadCase, split: Split, each: int) -> float:
    """Return the seconds between devices of one stage: sums of tensor parallelism, tokens of experts."""
    link = case.device.link or PCIE
    wait = FAST if case.device.link else SLOW
    layers = -(-len(case.shape.blocks) // split.pipeline)
    size = each * case.shape.hidden * 2
    seconds = 0.0
    if split.tensor > 1:
        seconds += SUMS * layers * (wait + 2 * size * (split.tensor - 1) / split.tensor / link)
    if split.experts and split.data > 1:  # every copy's tokens go to every other copy, and back
        between = PCIE if spread(case.device, split) else link
        seconds += SUMS * layers * (wait + size * (split.data - 1) / between)
    return seconds + (wait + size / PCIE if split.pipeline > 1 else 0.0)
