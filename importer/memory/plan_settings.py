"""What a plan writes into a document, and its reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from importer import backends
from importer.memory.devices import GIB
from importer.memory.parallelism import (
    BATCHED,
    CACHE,
    CONTEXT,
    DATA,
    ENCODER,
    EXPERTS,
    FP8,
    KV_DTYPE,
    LAYOUT,
    LOCAL,
    PIPELINE,
    SHARE,
    SLOTS,
    TENSOR,
    cache_bytes,
    inside,
    spread,
)
from importer.memory.plans import Plan, PlanReason
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Source, warning

if TYPE_CHECKING:
    from importer.memory.planner import Candidate


GOALS = {
    "latency": PlanReason.GOAL_LATENCY,
    "throughput": PlanReason.GOAL_THROUGHPUT,
    "context": PlanReason.GOAL_CONTEXT,
}


def gib(size: float) -> str:
    """Return bytes as text, such as ``15.3 GiB``; less than half a GiB in MiB, less than a MiB in KiB."""
    if size >= GIB / 2:
        return f"{size / GIB:.1f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def settings(plan: Candidate) -> list[Evidence]:
    """Return the settings of a plan that the user has not fixed, each with its reason.

    SGLang gets tensor parallelism alone: it chooses its own share of a card. Engines on MLX get none.
    """
    backend = plan.case.backend
    made = _written(plan) if backends.of(backend).on_cards else ()
    if backends.of(backend).shares_evenly:
        made = (e for e in made if e.key == TENSOR)
    return [e for e in made if not plan.case.request.is_fixed(e.key)]


def fixed_layout(plan: Candidate) -> Iterator[Evidence]:
    """Yield warnings at the user's values: fewer sequences, idle cards, sizes that no estimate knows."""
    case, split = plan.case, plan.split
    for key in case.load(case.context, split).uncounted:
        why = Reason(PlanReason.UNCOUNTED, key=key.removeprefix("engine_args."))
        yield Evidence(Rule.FITS, key, case.request.get(key), Source.FIT, warning(why))
    if case.request.is_fixed(SLOTS) and not plan.meets and case.aim.concurrency is not None:
        yield Evidence(Rule.FITS, SLOTS, case.request.get(SLOTS), Source.FIT, warning(_held(plan)))
    fixed = [key for key in LAYOUT if case.request.is_fixed(key) and case.request.get(key) is not None]
    idle = case.device.count - split.devices if case.device.is_card else 0
    if backends.of(case.backend).on_cards and fixed and idle > 0:
        why = Reason(PlanReason.IDLE, count=idle, device=case.device.name)
        yield Evidence(Rule.FITS, fixed[0], case.request.get(fixed[0]), Source.FIT, warning(why))


def described_plan(plans: tuple[Candidate, ...], context: int) -> tuple[Plan, ...]:
    """Return plans as receipts hold them, the best first; ``context`` is that of the best."""
    return tuple(_plan(p, context if p is plans[0] else min(p.context, p.case.context)) for p in plans)


def asked_facts(tokens: int) -> Reason:
    """Return the reason of a context that the user requested with ``--context``."""
    return Reason(PlanReason.ASKED, tokens=tokens)


def _plan(plan: Candidate, context: int) -> Plan:
    case, split, facts = plan.case, plan.split, settings(plan)
    dtype = str(case.request.get(KV_DTYPE) or "auto")
    return Plan(
        case.device.label, split, context, plan.sequences, min(case.tokens, plan.context), dtype,
        plan.placed.share, tuple((e.key, e.value) for e in facts),
        None if plan.step is None else plan.step.seconds * 1000,
        None if plan.busy is None else plan.busy.rate,
        tuple(_reasons(plan)), plan.meets,
    )  # fmt: skip


def _reasons(plan: Candidate) -> Iterator[Reason]:
    """Yield the reasons for the layout, what it holds, and what a start requires."""
    case, split = plan.case, plan.split
    if case.aim.goal is not None:
        yield Reason(GOALS[case.aim.goal])
    if case.pools and split.copies > 1:
        yield Reason(PlanReason.POOLED)
    if case.aim.goal == "throughput" and split.tensor > 1 and plan.busy is not None:
        yield Reason(PlanReason.DECODING_ALONE)
    if split.devices > 1 or case.device.count > 1:
        yield from dict.fromkeys(why for _, _, why in _layout(plan))
    if plan.is_fp8:
        yield Reason(PlanReason.FP8_CACHE, device=case.device.name)
    yield _held(plan)
    if (machines := split.cards // inside(case.device)) > 1:
        over = PlanReason.COPIES_OF_MACHINES if spread(case.device, split) else PlanReason.MACHINES
        yield Reason(over, count=machines)
    if plan.is_fp8:
        yield Reason(PlanReason.ROUNDED)
    if (idle := case.device.count - split.devices) > 0:
        yield Reason(PlanReason.IDLE, count=idle, device=case.device.name)
    from importer.memory.planner import named_by_card

    if (named := named_by_card(case)) is not None:
        yield Reason(PlanReason.SISTERS, names=named)


def _held(plan: Candidate) -> Reason:
    tokens = min(plan.case.tokens, plan.context)
    wanted = plan.case.aim.concurrency
    if wanted is not None and plan.sequences < wanted:
        return Reason(PlanReason.FEWER, held=plan.sequences, wanted=wanted, tokens=tokens)
    return Reason(PlanReason.SEQUENCES, count=plan.sequences, tokens=tokens)


Setting = tuple[str | None, Any, Reason]


def _layout(plan: Candidate) -> Iterator[Setting]:
    """Yield key, value and reason for each part of the layout; servers beside each other have no key."""
    case, split = plan.case, plan.split
    name = case.device.name
    if split.tensor > 1:
        kind = PlanReason.EXPERTS_WHOLE if split.experts and split.data == 1 else PlanReason.TENSOR
        yield TENSOR, split.tensor, Reason(kind, cards=split.tensor, device=name, heads=case.shape.heads)
    if split.pipeline > 1:
        over = split.tensor * split.pipeline > case.device.node
        why = Reason(PlanReason.STAGES, stages=split.pipeline, cards=split.tensor, device=name, machines=over)
        yield PIPELINE, split.pipeline, why
    cards, each = split.tensor * split.data, split.cards // split.data
    dealt = Reason(PlanReason.EXPERTS, copies=split.data, cards=cards, each=each)
    if split.data > 1:
        copied = Reason(PlanReason.COPIES, copies=split.data, cards=cards, each=each)
        yield DATA, split.data, dealt if split.experts else copied
    if spread(case.device, split):
        machines = max(split.cards // inside(case.device), 1)
        local = split.data // machines
        yield LOCAL, local, Reason(PlanReason.LOCAL_COPIES, copies=local, machines=machines)
    if split.experts:
        yield EXPERTS, True, dealt
    if split.replicas > 1:
        yield None, split.replicas, Reason(PlanReason.SERVERS, servers=split.replicas, cards=split.cards)


def _written(plan: Candidate) -> Iterator[Evidence]:
    """Yield the layout, the share of each card, the cache, and the limits of requests and steps."""
    case, placed = plan.case, plan.placed
    for key, value, why in _layout(plan):
        if key is not None:
            yield _fact(key, value, why)
    if case.device.is_card:
        kind = PlanReason.LARGER_SHARE if placed.share > case.device.share else PlanReason.SHARE
        why = Reason(
            kind, budget=gib(placed.budget), memory=gib(case.device.memory or 0), device=case.device.name,
            usual=case.device.share,
        )  # fmt: skip
        yield _fact(SHARE, placed.share, why)
    else:
        yield _cpu_cache(plan)
    if case.encodes_whole(plan.split):
        size = gib(case.encoder_copies(plan.split))
        yield _fact(ENCODER, "data", Reason(PlanReason.ENCODER, size=size, cards=plan.split.tensor))
    if plan.is_fp8:
        why = Reason(PlanReason.FP8_CACHE, device=case.device.name)
        forced = case.request.is_fixed(CONTEXT)  # the user's context leaves nothing else
        yield _fact(KV_DTYPE, FP8, warning(why) if forced else why)
    yield from _limits(plan)


def _limits(plan: Candidate) -> Iterator[Evidence]:
    case, split = plan.case, plan.split
    blocks = case.state_blocks(plan.placed, case.fit(case.context, split))
    if blocks is not None and blocks < case.running(split):
        most = blocks >> (digits := max(blocks.bit_length() - 4, 0)) << digits  # a round number
        why = Reason(PlanReason.STATE_BLOCKS, count=most)
        short = plan.sequences < (case.aim.concurrency or 1)
        yield _fact(SLOTS, most, warning(_held(plan)) if short else why)
    elif plan.is_fewer:
        count = case.request.count(SLOTS)
        why = Reason(PlanReason.FEW_SLOTS, count=count)
        yield _fact(SLOTS, count, warning(_held(plan)) if case.aim.concurrency else why)
    elif (slots := case.slots(split)) is not None:
        why = Reason(PlanReason.SLOTS, count=slots, copies=split.copies)
        short = plan.sequences < (case.aim.concurrency or 1)
        yield _fact(SLOTS, slots, warning(_held(plan)) if short else why)
    if (batched := case.batched()) is not None:
        less = case.aim.goal == "latency"
        yield _fact(
            BATCHED,
            batched,
            Reason(PlanReason.BATCHED_LESS if less else PlanReason.BATCHED_MORE, tokens=batched),
        )


def _fact(key: str, value: Any, why: Reason) -> Evidence:
    return Evidence(Rule.FIT, key, value, Source.FIT, why)


def _cpu_cache(plan: Candidate) -> Evidence:
    """Return the size of the cache on processors: vLLM's default needs nearly all memory to be free."""
    fit = plan.case.fit(min(plan.context, plan.case.context) or plan.case.context, plan.split)
    size, one = plan.case.processor_cache(plan.placed), cache_bytes(fit)
    count = max(size // one, 1) if one else 1
    return _fact(CACHE, size, Reason(PlanReason.CACHE, count=count, tokens=fit.load.context))
