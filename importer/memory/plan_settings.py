"""What a plan writes into a document and into its receipt, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from importer import backends
from importer.memory.case import LoadCase
from importer.memory.devices import GIB
from importer.memory.engine_keys import (
    BATCHED,
    CACHE,
    CONTEXT,
    DATA,
    EXPERTS,
    FP8,
    KV_DTYPE,
    LAYOUT,
    LOCAL,
    PIPELINE,
    SHARE,
    SLOTS,
    TENSOR,
)
from importer.memory.parallelism import inside, spread
from importer.memory.planner import Plan
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.evidence import Evidence, Rule, Source, warning
from importer.signals.quantisation import VARIANTS

# Arguments of a server over several machines: without and with copies in each.
OF_MACHINES = (
    "Ray or nnodes, node_rank and master_addr", "data_parallel_address and data_parallel_start_rank",
)  # fmt: skip


def _stages(fields: Fields) -> str:
    where = ": one or more for each machine" if fields["machines"] else ""
    return f"{fields['stages']} stages of layers, {fields['cards']} x {fields['device']} for each{where}"


def _copies(fields: Fields) -> str:
    each = "one card holds" if fields["each"] == 1 else f"{fields['each']} cards hold"
    return f"{each} the model; {fields['copies']} copies share the requests"


def _experts(fields: Fields) -> str:
    copies = f"; attention is copied {fields['copies']} times" if fields["copies"] > 1 else ""
    return f"whole experts are dealt out over {fields['cards']} cards{copies}"


def _slots(fields: Fields) -> str:
    each = f" in each of {fields['copies']} copies" if fields["copies"] > 1 else ""
    return f"{fields['count']} sequences at the same time{each}, as requested"


class PlanReason(ReasonKind):
    """Reasons of a plan: for its layout and its settings, and what they cost."""

    TENSOR = "{cards} x {device} share each layer; {heads} heads divide by it", "splits {heads} heads"
    STAGES = _stages, "layers in stages"
    COPIES = _copies, "{copies} copies"
    EXPERTS = _experts, "experts over cards"
    EXPERTS_WHOLE = (
        (
            "{cards} x {device} share attention and keep experts whole, since the blocks of their scales do "
            "not divide"
        ),
        "whole experts",
    )
    SERVERS = (
        "{servers:server|servers} of {cards:card|cards}: start the document once for each, with a "
        "balancer before them"
    )
    SHARE = "{budget} of the {memory} of {device}", "default share"
    LARGER_SHARE = (
        "{budget} of the {memory} of {device}; with the usual {usual} the context would be shorter",
        "longer context",
    )
    CACHE = "{count} x {tokens:,} tokens; left to itself, vLLM would take all memory", "{count} sequences"
    FP8_CACHE = (
        (
            "keys and values in 8 bits, in which {device} calculates: half the memory for each token, and "
            "answers may differ a little"
        ),
        "half the memory",
    )
    SLOTS = _slots, "as requested"
    FEW_SLOTS = (
        "{count:sequence|sequences} at the same time: the memory of more leaves no room for the context",
        "longer context",
    )
    STATE_BLOCKS = (
        "{count:sequence|sequences} at the same time: vLLM needs a block of states for each",
        "blocks of states",
    )
    BATCHED = "{tokens:,} tokens of prompts in one step, for the goal {goal}", "goal {goal}"
    SEQUENCES = "it holds {count:sequence|sequences} of {tokens:,} tokens at the same time"
    ASKED = "{tokens:,} tokens were requested", "as requested"
    BEYOND = "{wanted:,} tokens were requested; the model has {most:,}", "the model's most"
    FEWER = (
        (
            "it holds {held:,} of the {wanted:,} requested sequences of {tokens:,} tokens at the same time; "
            "the others wait"
        ),
        "{held} held",
    )
    IDLE = "{count} x {device} have no part", "idle cards"
    MACHINES = "vLLM is started on each of {count} machines, with {arguments}"
    LOCAL_COPIES = "{copies} copies on each of {machines} machines", "copies per machine"
    SISTERS = "the card names quantised repositories of it: {names:and}"
    UNCOUNTED = "the estimate does not know how much memory {key} takes", "size unknown"
    OTHER_ENGINE = "{device} is served by {engine}, not by the released {backend}"


def gib(size: float) -> str:
    """Return bytes as text, such as ``15.3 GiB``; less than half a GiB in MiB, less than a MiB in KiB."""
    if size >= GIB / 2:
        return f"{size / GIB:.1f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def settings(plan: Plan) -> list[Evidence]:
    """Return the settings of a plan that the user has not fixed, each with its reason.

    SGLang gets tensor parallelism alone: it chooses its own share of a card. Engines on MLX get none.
    """
    backend = plan.case.backend
    made = _written(plan) if backends.of(backend).on_cards else ()
    if backends.of(backend).shares_evenly:
        made = (e for e in made if e.key == TENSOR)
    return [e for e in made if not plan.case.request.is_fixed(e.key)]


def fixed_layout(plan: Plan) -> Iterator[Evidence]:
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


def asked_facts(tokens: int) -> Reason:
    """Return the reason of a context that the user requested with ``--context``."""
    return Reason(PlanReason.ASKED, tokens=tokens)


def plan_json(plan: Plan) -> dict[str, object]:
    """Return a plan as receipts hold it.

    ``sequences`` are those of ``tokens`` that all copies hold together, ``settings`` what a document gets,
    ``step_ms`` and ``tokens_per_second`` bounds by the memory's bandwidth.
    """
    case, step, busy = plan.case, plan.step, plan.busy
    return {
        "device": case.device.label,
        **plan.split.to_json(),
        "max_model_len": plan.length,
        "sequences": plan.sequences,
        "tokens": min(case.tokens, plan.context),
        "kv_cache_dtype": str(case.request.get(KV_DTYPE) or "auto"),
        "gpu_memory_utilization": plan.share,
        "settings": {e.key: e.value for e in settings(plan)},
        "step_ms": None if step is None else round(step.seconds * 1000, 2),
        "tokens_per_second": None if busy is None else round(busy.rate),
        "meets": plan.meets,
        "why": [render(reason) for reason in _reasons(plan)],
    }


def _reasons(plan: Plan) -> Iterator[Reason]:
    """Yield the reasons for the layout, what it holds, and what a start requires."""
    case, split = plan.case, plan.split
    if split.devices > 1 or case.device.count > 1:
        yield from dict.fromkeys(why for _, _, why in _layout(plan))
    if plan.is_fp8:
        yield Reason(PlanReason.FP8_CACHE, device=case.device.name)
    yield _held(plan)
    if (machines := split.cards // inside(case.device)) > 1:
        yield Reason(PlanReason.MACHINES, count=machines, arguments=OF_MACHINES[spread(case.device, split)])


def _held(plan: Plan) -> Reason:
    tokens = min(plan.case.tokens, plan.context)
    wanted = plan.case.aim.concurrency
    if wanted is not None and plan.sequences < wanted:
        return Reason(PlanReason.FEWER, held=plan.sequences, wanted=wanted, tokens=tokens)
    return Reason(PlanReason.SEQUENCES, count=plan.sequences, tokens=tokens)


Setting = tuple[str | None, Any, Reason]


def _layout(plan: Plan) -> Iterator[Setting]:
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


def _written(plan: Plan) -> Iterator[Evidence]:
    """Yield the layout, the share of each card, the cache, and the limits of requests and steps."""
    case = plan.case
    for key, value, why in _layout(plan):
        if key is not None:
            yield _fact(key, value, why)
    if case.device.is_card:
        kind = PlanReason.LARGER_SHARE if plan.share > case.device.share else PlanReason.SHARE
        why = Reason(
            kind, budget=gib(plan.budget), memory=gib(case.device.memory or 0), device=case.device.name,
            usual=case.device.share,
        )  # fmt: skip
        yield _fact(SHARE, plan.share, why)
    else:
        yield _cpu_cache(plan)
    if plan.is_fp8:
        why = Reason(PlanReason.FP8_CACHE, device=case.device.name)
        forced = case.request.is_fixed(CONTEXT)  # the user's context leaves nothing else
        yield _fact(KV_DTYPE, FP8, warning(why) if forced else why)
    yield from _limits(plan)


def _limits(plan: Plan) -> Iterator[Evidence]:
    case, split, blocks = plan.case, plan.split, plan.state_blocks()
    count = case.slots(split)
    why = Reason(PlanReason.SLOTS, count=count, copies=split.copies)
    if blocks is not None and blocks < case.running(split):
        count = blocks >> (digits := max(blocks.bit_length() - 4, 0)) << digits  # a round number
        why = Reason(PlanReason.STATE_BLOCKS, count=count)
    elif plan.is_fewer:
        count = case.request.count(SLOTS)
        why = Reason(PlanReason.FEW_SLOTS, count=count)
    if count is not None:
        short = plan.sequences < (case.aim.concurrency or 1)
        yield _fact(SLOTS, count, warning(_held(plan)) if short else why)
    if (batched := case.batched()) is not None:
        yield _fact(BATCHED, batched, Reason(PlanReason.BATCHED, tokens=batched, goal=case.aim.goal))


def _fact(key: str, value: Any, why: Reason) -> Evidence:
    return Evidence(Rule.FIT, key, value, Source.FIT, why)


def _cpu_cache(plan: Plan) -> Evidence:
    """Return the size of the cache on processors: vLLM's default needs nearly all memory to be free."""
    fit = plan.case.fit(plan.context or plan.case.context, plan.split)
    size = plan.processor_cache()
    count = max(size // fit.cache, 1) if fit.cache else 1
    return _fact(CACHE, size, Reason(PlanReason.CACHE, count=count, tokens=fit.load.context))


def named_by_card(case: LoadCase) -> tuple[str, ...] | None:
    """Return the quantised repositories of the model that the card names; ``None`` without any."""
    named = case.request.get(VARIANTS)
    return tuple(map(str, named)) if isinstance(named, list) and named else None
