"""Plans for a goal: every layout is estimated and ranked; what a plan writes, costs and reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import log

from importer.frozen import frozen
from importer.memory import pages
from importer.memory.config_keys import Keys
from importer.memory.devices import MOST
from importer.memory.estimate_types import Fit
from importer.memory.experts import chosen, count
from importer.memory.layers import Attention, Latent
from importer.memory.parallelism import (
    CACHE,
    CONTEXT,
    FP8,
    KV_DTYPE,
    SHORTEST,
    SLOTS,
    LoadCase,
    Placed,
    cache_bytes,
    has_experts,
    inside,
    spread,
)
from importer.memory.plans import Split
from importer.memory.quantised import sizes
from importer.memory.shape import Shape
from importer.signals.architecture import text_config
from importer.signals.quantised_variants import KEY

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
    read += each * cache_bytes(fit)
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


NEXT = 2  # plans beside the best
FEW = (256, 32)  # sequences at the same time, where more leave no room for the context


@frozen
class Candidate:
    """One layout with what it holds; ``case`` has its dtype of keys and values.

    ``sequences``  of ``case.tokens`` tokens, that all copies hold together.
    ``most``       sequences that it holds and runs.
    """

    case: LoadCase
    placed: Placed
    sequences: int
    most: int

    @property
    def step(self) -> Step | None:
        """Return the bound for the requested sequences; ``None`` for pooled texts, without decoding."""
        return self._bound(min(self.case.aim.concurrency or 1, max(self.sequences, 1)))

    @property
    def busy(self) -> Step | None:
        """Return the bound for as many sequences as it holds or runs."""
        return self._bound(max(self.most, 1))

    def _bound(self, sequences: int) -> Step | None:
        tokens = max(min(self.case.tokens, self.context), 1)
        return None if self.case.pools else step(self.case, self.split, sequences, tokens)

    @property
    def split(self) -> Split:
        """Return the layout."""
        return self.placed.split

    @property
    def context(self) -> int:
        """Return the tokens of its longest sequence."""
        return self.placed.longest.context

    @property
    def whole(self) -> bool:
        """Return whether it holds the whole context."""
        return self.context >= self.case.context

    @property
    def meets(self) -> bool:
        """Return whether it holds the whole context, and the requested number of sequences."""
        return self.whole and self.sequences >= (self.case.aim.concurrency or 1)

    @property
    def staged(self) -> bool:
        """Return whether stages stand inside of a machine, where each token waits for them in turn."""
        machines = max(self.split.cards // inside(self.case.device), 1)
        return self.split.pipeline > machines

    @property
    def is_fewer(self) -> bool:
        """Return whether the plan runs fewer sequences at the same time than vLLM by itself."""
        request = self.case.request
        return request.count(SLOTS) is not None and not request.is_fixed(SLOTS)

    @property
    def is_fp8(self) -> bool:
        """Return whether the plan has keys and values in 8 bits, not the checkpoint or the user."""
        return self.case.request.get(KV_DTYPE) == FP8 and not self.case.request.is_fixed(KV_DTYPE)


def deploy(case: LoadCase) -> tuple[Candidate, ...]:
    """Return the best plan and the two next-best, each with another layout or dtype of keys and values."""
    case = _free(case)
    found = list(_candidates(case, case.shares()[:1]))
    if case.aim.goal == "context" or not _suits(found):
        found += _candidates(case, case.shares()[1:])
        small = with_fp8(case)
        if small is not None:
            found += _candidates(small, case.shares())
        for fewer in with_fewer(small or case):
            if not any(c.meets for c in found):
                found += _candidates(fewer, case.shares())
    ranked = sorted(found, key=_order(case, found))
    distinct: dict[tuple[Split, bool], Candidate] = {}
    for candidate in ranked:
        distinct.setdefault((candidate.split, candidate.is_fp8), candidate)
    best, *others = distinct.values()
    useful = [c for c in others if c.context >= min(SHORTEST, case.context)]
    return (best, *useful[:NEXT])


def _suits(found: list[Candidate]) -> bool:
    """Return whether a plan without stages inside of a machine holds the request."""
    return any(c.meets and not c.staged for c in found)


def larger(case: LoadCase) -> tuple[Candidate, ...] | None:
    """Return plans for more cards of the same kind, the fewest that hold the request; ``None`` without."""
    if not case.device.is_card or not case.planned:
        return None
    count = case.device.count * 2
    least = case.weights.amount.low / max((case.device.memory or 1) * case.device.share, 1)
    while count <= MOST:
        if count < least:  # no estimate is required
            count *= 2
            continue
        plans = deploy(replace(case, device=replace(case.device, count=count)))
        if plans[0].whole:
            return plans
        count *= 2
    return None


def with_fp8(case: LoadCase) -> LoadCase | None:
    """Return the case with keys and values in 8 bits, where device and engine have them; else ``None``."""
    request = case.request
    plain = pages.kv_name(case.shape, case.load(case.context, Split())) in pages.BYTES
    able = case.planned and case.device.is_card and FP8 in case.device.native
    able = able and case.fp8_needs() is None
    attends = any(isinstance(c, Attention | Latent) for c in case.shape.caches)
    if not (plain and able and attends) or request.is_fixed(KV_DTYPE):
        return None
    return replace(case, request=replace(request, values={**request.values, KV_DTYPE: FP8}))


def with_fewer(case: LoadCase) -> Iterator[LoadCase]:
    """Yield the case with fewer sequences at the same time: their logits and states leave room for a cache.

    Where more were requested than vLLM runs by itself, that number precedes the few.
    """
    request, wanted = case.request, case.aim.concurrency
    if not case.planned or request.is_fixed(SLOTS) or case.pools:
        return
    if request.is_fixed(CONTEXT) and wanted is None:  # such a context is judged with vLLM's own number
        return
    usual = pages.slots_default(case.load(case.context, Split()))
    for number in (*([usual] if wanted is not None else []), *(n for n in FEW if n < usual)):
        if wanted is None or number < wanted:
            yield replace(case, request=replace(request, values={**request.values, SLOTS: number}))


def _free(case: LoadCase) -> LoadCase:
    """Return the case without a dtype of keys that no user fixed: a plan decides it."""
    request = case.request
    if request.is_fixed(KV_DTYPE) or KV_DTYPE not in request.values:
        return case
    free = {k: v for k, v in request.values.items() if k != KV_DTYPE}
    return replace(case, request=replace(request, values=free))


def _candidates(case: LoadCase, shares: tuple[float, ...]) -> Iterator[Candidate]:
    """Yield each layout with each share."""
    return (_candidate(case, split, share) for share in shares for split in case.splits())


def _candidate(case: LoadCase, split: Split, share: float) -> Candidate:
    placed = case.placed(split, share)
    tokens = max(min(case.tokens, placed.longest.context), 1)
    sequences = case.held(tokens, split, share) if placed.longest.context else 0
    if case.planned and not case.device.is_card and not case.request.is_fixed(CACHE):
        one = cache_bytes(case.fit(tokens, split))  # of the cache that the document gets, not of the memory
        sequences = min(sequences, case.processor_cache(placed) // one * split.copies) if one else sequences
    running = (case.request.count(SLOTS) or case.slots(split) or 0) * split.copies
    if running < (case.aim.concurrency or 0) and not case.pools:
        sequences = min(sequences, running)  # whatever else the cache has room for
    usual = pages.slots_default(case.load(tokens, split)) * split.copies
    return Candidate(case, placed, sequences, min(sequences, case.aim.concurrency or usual))


Key = tuple[float | int | bool, ...]


def _order(case: LoadCase, found: list[Candidate]) -> Callable[[Candidate], Key]:
    """Return the key of the order for the goal; what holds the request comes first."""
    goal = case.aim.goal
    alone = any(c.meets and c.split.tensor == c.split.pipeline == 1 and not c.split.experts for c in found)
    linked = case.device.link is not None

    def key(c: Candidate) -> Key:
        split = c.split
        fuller = c.placed.share > case.device.share
        apart = has_experts(case.shape) and (split.replicas > 1) == linked  # experts over slow links, or not
        narrow = alone or goal in ("latency", "throughput") or (case.device.kind == "cpu" and goal is None)
        wide = spread(c.case.device, split) and goal in (None, "latency")
        last: Key = (split.tensor if narrow else -split.tensor, apart, -split.data)
        plain: Key = (c.staged, c.is_fp8, fuller, c.is_fewer, wide, split.pipeline)
        if goal == "context":
            return (-min(c.context, case.context), *plain, -c.sequences, *last)
        speed = _slow(c.step) if goal == "latency" else _slow(c.busy, rate=True) if goal else 0.0
        if c.meets:
            return (0, *plain, speed, *last)
        held = -c.sequences if c.whole else -c.context
        return (1 if c.whole else 2, held, *plain, speed, *last)

    return key


def _slow(bound: Step | None, *, rate: bool = False) -> float:
    """Return a number that is less for a faster layout; differences under five percent do not count."""
    if bound is None:
        return 0.0
    value = 1 / bound.rate if rate else bound.seconds
    return round(log(value) / log(1.05))


def named_by_card(case: LoadCase) -> tuple[str, ...] | None:
    """Return the quantised repositories of the model that the card names; ``None`` without any."""
    named = case.request.get(KEY)
    return tuple(map(str, named)) if isinstance(named, list) and named else None
