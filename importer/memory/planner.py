"""Plans of a case: what each layout and share of the cards holds, ranked for the goal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import cache
from math import isqrt, log
from typing import TYPE_CHECKING

from importer import backends
from importer.frozen import frozen
from importer.memory import pages
from importer.memory.case import LoadCase
from importer.memory.devices import MOST, Device, known
from importer.memory.engine_keys import (
    CACHE,
    CONTEXT,
    FP8,
    FP8_NEEDS,
    KV_DTYPE,
    LAYOUT,
    SHARE,
    SLOTS,
    FitRequest,
    memory_arguments,
)
from importer.memory.estimate import longest
from importer.memory.estimate_types import Fit
from importer.memory.layers import Attention, Latent, State
from importer.memory.parallelism import has_experts, inside, spread
from importer.memory.plans import Split
from importer.memory.rest import MIB

if TYPE_CHECKING:
    from importer.memory.bounds import Step

SHORTEST = 1024  # tokens; a shorter context is of no use
STEPS = ((4096, 1024), (0, 256))  # from this number of tokens on, a context is a multiple of the second
CPU_SEQUENCES, CPU_PART = 8, 8  # that a processor's cache holds at most; of the memory, one in so many
MOST_SLOTS = 1024  # sequences, where one takes no memory
NEXT = 2  # plans beside the best
FEW = (256, 32)  # sequences at the same time, where more leave no room for the context


@frozen
class Plan:
    """A layout of a model on a device, with a share of each card."""

    case: LoadCase
    split: Split
    share: float
    _found: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def context(self) -> int:
        """Return the tokens of its longest sequence, 0 where not even the shortest fits."""
        if "context" not in self._found:  # the ranking asks many times
            self._found["context"] = longest(self.case.shape, self.fit, self._room(self.fit))
        return self._found["context"]

    @property
    def sequences(self) -> int:
        """Return how many sequences of ``case.tokens`` tokens all copies hold together, and may run."""
        if "sequences" not in self._found:
            self._found["sequences"] = self._held()
        return self._found["sequences"]

    @property
    def whole(self) -> bool:
        """Return whether it holds the whole context."""
        return self.fit.total.likely <= self._room(self.fit)

    def at(self, context: int) -> Plan:
        """Return the same arrangement of a case with another context."""
        return Plan(replace(self.case, context=context), self.split, self.share)

    @property
    def fit(self) -> Fit:
        """Return the estimate with the whole context of the case."""
        return self.case.fit(self.case.context, self.split)

    @property
    def budget(self) -> int:
        """Return the bytes of one card that may be filled; the likely total keeps ``spare`` of them free."""
        return int((self.case.device.memory or 0) * self.share)

    @property
    def spare(self) -> int:
        """Return the bytes to keep free: what the estimate may lack, and what an assumed device may lack."""
        return self._spare(self.fit)

    def _spare(self, fit: Fit) -> int:
        if self.case.caution == "least":
            return fit.total.low - fit.total.likely
        whole = isqrt(fit.spare**2 + int(self.case.device.doubt * self.share) ** 2)
        return whole if self.case.caution == "whole" else whole // 2

    def _room(self, fit: Fit) -> int:
        """Return the bytes for the likely total of one device; fewer where the user limits the cache."""
        room, space = self.budget - self._spare(fit), self.case.space(fit)
        return room if space is None else min(room, fit.total.likely - fit.cache + space)

    def _held(self) -> int:
        case, split = self.case, self.split
        if not self.context:
            return 0
        tokens = max(min(case.tokens, self.context), 1)
        one, two = case.fit(tokens, split), case.fit(tokens, split, 2)
        each, free = two.cache - one.cache, self._room(one) - one.total.likely
        held = 0 if free < 0 else (1 + (free // each if each > 0 else MOST_SLOTS)) * split.copies
        if case.planned and not case.device.is_card and not case.request.is_fixed(CACHE) and one.cache:
            held = min(held, self.processor_cache() // one.cache * split.copies)  # what the document gives
        running = (case.request.count(SLOTS) or case.slots(split) or 0) * split.copies
        if running < (case.aim.concurrency or 0) and not case.pools:
            held = min(held, running)  # whatever else the cache has room for
        return held

    def processor_cache(self) -> int:
        """Return the bytes that a document gives the cache on a processor: for the wanted sequences at least,
        else for a few of the whole context within a part of the memory.
        """
        case = self.case
        fit = case.fit(self.context or case.context, self.split)
        one, wanted = fit.cache, case.aim.concurrency or 1
        free = max(one, self.budget - self.spare - fit.total.likely + one)
        most = max(one * wanted, (case.device.memory or 0) // CPU_PART)
        empty = pages.pool(case.shape, fit.load).block  # that vLLM keeps of any cache
        return -(-(min(free, max(CPU_SEQUENCES, wanted) * one, most) + empty) // MIB) * MIB

    def state_blocks(self) -> int | None:
        """Return the safe number of blocks, where vLLM requires one for each sequence; ``None`` elsewhere.

        So it does for graphs of a model with states, and pooled texts have no such graphs.
        """
        case, fit = self.case, self.fit
        states = any(isinstance(cached, State) for cached in case.shape.caches)
        if not case.planned or not case.device.is_card or case.device.memory is None or not states:
            return None
        graphs = not case.pools and memory_arguments(case.backend).records_states(case.request)
        if not (graphs and pages.has(fit.load, pages.BLOCK_EACH)):
            return None
        free = case.space(fit)
        free = self.budget - self.spare - fit.total.likely + fit.cache if free is None else free
        return max(free // pages.pool(case.shape, fit.load).block, 1)

    @property
    def length(self) -> int:
        """Return the context that a document gets: the whole one, or a round number of tokens."""
        step = next(step for least, step in STEPS if self.context >= least)
        return self.context if self.whole else self.context // step * step

    @property
    def step(self) -> Step | None:
        """Return the bound for the requested sequences; ``None`` for pooled texts, without decoding."""
        return self._bound(min(self.case.aim.concurrency or 1, max(self.sequences, 1)))

    @property
    def busy(self) -> Step | None:
        """Return the bound for as many sequences as it holds or runs."""
        tokens = max(min(self.case.tokens, self.context), 1)
        usual = pages.slots_default(self.case.load(tokens, self.split)) * self.split.copies
        return self._bound(max(min(self.sequences, self.case.aim.concurrency or usual), 1))

    def _bound(self, sequences: int) -> Step | None:
        from importer.memory.bounds import step

        tokens = max(min(self.case.tokens, self.context), 1)
        return None if self.case.pools else step(self.case, self.split, sequences, tokens)

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


def deploy(case: LoadCase) -> tuple[Plan, ...]:
    """Return the best plan and the two next-best, each with another layout or dtype of keys and values."""
    case = _free(case)
    found = _plans(case, case.shares()[:1])
    if case.aim.goal == "context" or not any(p.meets and not p.staged for p in found):
        found += _plans(case, case.shares()[1:])
        small = with_fp8(case)
        if small is not None:
            found += _plans(small, case.shares())
        for fewer in _with_fewer(small or case):
            if not any(p.meets for p in found):
                found += _plans(fewer, case.shares())
    distinct: dict[tuple[Split, bool], Plan] = {}
    for plan in sorted(found, key=_order(case, found)):
        distinct.setdefault((plan.split, plan.is_fp8), plan)
    best, *others = distinct.values()
    useful = [p for p in others if p.context >= min(SHORTEST, case.context)]
    return (best, *useful[:NEXT])


def larger(case: LoadCase) -> tuple[Plan, ...] | None:
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


def would_hold(case: LoadCase) -> tuple[Device, ...]:
    """Return named devices that hold the whole context: the fewest cards, and the least total memory."""
    kinds = {"cuda", "rocm"} if backends.of(case.backend).on_cards else {"metal"}
    free = FitRequest({k: v for k, v in case.request.values.items() if k not in {*LAYOUT, SHARE}})
    able = [d for d in known().values() if d.kind in kinds and "bf16" in d.native]
    several = [replace(d, count=n) for d in able for n in (1, 2, 4, 8) if n == 1 or d.node >= n]
    several.sort(key=lambda d: ((d.memory or 0) * d.count, d.count))
    holds = cache(lambda device: _holds_all(replace(case, device=device, request=free, measured=None)))
    small = next(filter(holds, several), None)
    few = next(filter(holds, sorted(several, key=lambda d: d.count)), None)
    return tuple(dict.fromkeys(d for d in (few, small) if d is not None))


def _holds_all(case: LoadCase) -> bool:
    """Return whether all cards together, each with its default share, hold the whole context."""
    device = case.device
    if case.weights.amount.low > int((device.memory or 0) * device.share) * device.count:
        return False  # no estimate is required
    widest = [s for s in case.splits() if s.copies == 1]
    return any(Plan(case, s, device.share).whole for s in sorted(widest, key=lambda s: s.pipeline)[:1])


def with_fp8(case: LoadCase) -> LoadCase | None:
    """Return the case with keys and values in 8 bits, where device and engine have them; else ``None``."""
    request = case.request
    plain = pages.kv_name(case.shape, case.load(case.context, Split())) in pages.BYTES
    able = case.planned and case.device.is_card and FP8 in case.device.native
    able = able and str(case.config.get("model_type")) not in FP8_NEEDS
    attends = any(isinstance(c, Attention | Latent) for c in case.shape.caches)
    if not (plain and able and attends) or request.is_fixed(KV_DTYPE):
        return None
    return replace(case, request=replace(request, values={**request.values, KV_DTYPE: FP8}))


def _with_fewer(case: LoadCase) -> Iterator[LoadCase]:
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


def _plans(case: LoadCase, shares: tuple[float, ...]) -> list[Plan]:
    return [Plan(case, split, share) for share in shares for split in case.splits()]


Key = tuple[float | int | bool, ...]


def _order(case: LoadCase, found: list[Plan]) -> Callable[[Plan], Key]:
    """Return the key of the order for the goal; what holds the request comes first."""
    goal = case.aim.goal
    alone = any(p.meets and p.split.tensor == p.split.pipeline == 1 and not p.split.experts for p in found)
    linked = case.device.link is not None

    def key(p: Plan) -> Key:
        split = p.split
        fuller = p.share > case.device.share
        apart = has_experts(case.shape) and (split.replicas > 1) == linked  # experts over slow links, or not
        narrow = alone or goal in ("latency", "throughput") or (case.device.kind == "cpu" and goal is None)
        wide = spread(p.case.device, split) and goal in (None, "latency")
        last: Key = (split.tensor if narrow else -split.tensor, apart, -split.data)
        plain: Key = (p.staged, p.is_fp8, fuller, p.is_fewer, wide, split.pipeline)
        if goal == "context":
            return (-p.context, *plain, -p.sequences, *last)
        speed = _slow(p.step) if goal == "latency" else _slow(p.busy, rate=True) if goal else 0.0
        if p.meets:
            return (0, *plain, speed, *last)
        held = -p.sequences if p.whole else -p.context
        return (1 if p.whole else 2, held, *plain, speed, *last)

    return key


def _slow(bound: Step | None, *, rate: bool = False) -> float:
    """Return a number that is less for a faster layout; differences under five percent do not count."""
    if bound is None:
        return 0.0
    value = 1 / bound.rate if rate else bound.seconds
    return round(log(value) / log(1.05))
