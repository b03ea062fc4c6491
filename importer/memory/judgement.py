"""The judgement of a finished document: whether its engine starts with these values on the device.

It looks at the values alone, whoever chose them. ``choose`` judges each document that it has chosen for.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from typing import Literal

from importer import backends
from importer.frozen import frozen
from importer.memory import pages
from importer.memory.case import LoadCase
from importer.memory.config_keys import Keys
from importer.memory.devices import GIB, Device
from importer.memory.engine_keys import (
    BLOCKS,
    CACHE,
    CONTEXT,
    DTYPE,
    EXPERTS,
    FP8_NEEDS,
    KV_DTYPE,
    LAYOUT,
    SHARE,
    SLOTS,
    FitRequest,
)
from importer.memory.estimate import longest
from importer.memory.estimate_types import Amount, Fit
from importer.memory.experts import count
from importer.memory.layers import Latent
from importer.memory.measured import is_measured
from importer.memory.parallelism import divides
from importer.memory.plan_settings import gib
from importer.memory.planner import SHORTEST, Plan
from importer.memory.plans import NO_AIM, Split
from importer.reasons import Fields, Reason, ReasonKind, Text
from importer.signals.architecture import text_config

Word = Literal["fits", "may-not-start", "too-large"]
MOE_BACKEND, MEGA = "engine_args.moe_backend", "mega_moe"
BALANCED, REDUNDANT = "engine_args.enable_eplb", "engine_args.eplb_config.num_redundant_experts"
OLDEST, EIGHT_BITS = 70, 89  # compute capabilities that vLLM requires, and for a latent cache in 8 bits


def _several(what: str) -> Text:
    def says(fields: Fields) -> str:
        of = "" if fields["of"] is None else f" of {fields['of']}"
        return f"{fields['cards']}{of} {what}{fields['device']}, {fields['budget']} of each,"

    return says


class AmountReason(ReasonKind):
    """Reasons with amounts of memory on a device."""

    OF_NODES = (_several("memory nodes of "),)
    OF_ONE = "{budget} of {device}"
    OF_SEVERAL = (_several(""),)
    CACHE = "KV cache {size} per token"
    STATES = "states {size}"
    REST = "the rest {likely:.1f} to {high}"
    REST_MEASURED = "the rest {size}, {why}"
    WEIGHTS = "weights {size}"


def _too_large(fields: Fields) -> str:
    each = " on each" if fields["each"] else ""
    over = f"{fields['over']} more than the {fields['budget']} that can be used"
    parts = ", ".join(fields["parts"])
    return "; ".join((f"it does not fit {fields['device']}: {parts}{each}, {over}", *fields["ways"]))


class JudgementReason(ReasonKind):
    """Why an engine does not start with the values of a document, or may not."""

    TOO_LARGE = _too_large, "does not fit"
    TOO_LONG = "{tokens:,} tokens do not fit; {usable} hold {held:,} tokens: {parts}", "context too long"
    CACHE_TOO_SMALL = (
        "a cache of {size} holds {held:,} tokens, less than max_model_len, {tokens:,}",
        "cache too small",
    )
    CACHE_TOO_LARGE = (
        "{usable} have {left} beside the model, less than a cache of {size}: {parts}",
        "cache too large",
    )
    MORE_CARDS = "it takes {needed} cards, and {device} has {count}", "more cards"
    MAY_NOT_START = (
        "it may not start: {parts} take {low} to {high} of {usable}; {held:,} tokens are safe",
        "may not start",
    )
    LARGE_SHARE = (
        (
            "it may not start: vLLM ends where less than {share:g} of {device}, {size}, is free at its "
            "start, and {beside} are used beside it; set gpu_memory_utilization: {most:g}"
        ),
        "may not be free",
    )
    OLD_CARD = (
        "vLLM does not run on {device}: it requires compute capability 7.0, and the card has {capability}",
        "card too old",
    )
    STATE_BLOCKS = (
        (
            "{running:,} sequences at the same time may not start: vLLM needs a block of states for each, "
            "and {blocks:,} are safe; set max_num_seqs: {blocks}"
        ),
        "more than blocks",
    )
    NO_BFLOAT16 = (
        "vLLM does not start with bfloat16 on {device}, since it lacks that format; use float16",
        "device lacks BF16",
    )
    NOT_EVEN = (
        "states or blocks of scales do not divide by {cards}: vLLM ends while it loads the model",
        "uneven parts",
    )
    EXPERTS = (
        "{count} experts do not divide by the {cards} cards that share them: vLLM ends with {key}",
        "uneven experts",
    )
    FP8_CACHE = "beside a cache in 8 bits, vLLM asserts {setting}: true for this model", "attention setting"
    FP8_LATENT = (
        "vLLM ends at its start: it has no cache in 8 bits for latent attention on {device}",
        "no 8-bit cache",
    )


@frozen
class Problem:
    """A value that keeps the engine from its start, or may; ``key`` is its place in the document."""

    key: str
    reason: Reason


@frozen
class Judgement:
    """The memory of one device with these values, as one word.

    ``memory``  the value that is too much, or may be; ``start`` values that end the start by themselves.
    """

    word: Word
    plan: Plan
    memory: Problem | None
    start: tuple[Problem, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return every value that stands in the way, that of the memory first."""
        return self.start if self.memory is None else (self.memory, *self.start)


class _Everything(Container[str]):
    def __contains__(self, key: object) -> bool:
        return True


def judge(case: LoadCase, values: FitRequest) -> Judgement:
    """Return the judgement of a document's ``values`` for the model and the device of ``case``."""
    case = _finished(case, values)
    plan = Plan(case, _layout(case), case.shares()[0])
    word, problem = _memory(plan)
    if problem is None and (problem := _states(plan) or _share(plan)) is not None:
        word = "may-not-start"
    return Judgement(word, plan, problem, _start(case, plan.split))


def usable(plan: Plan, budget: int | None = None) -> Reason:
    """Return the usable memory, such as ``21.6 GiB of rtx4090`` or ``4 of 8 h100-80g, 72.8 GiB of each,``."""
    device, cards = plan.case.device, plan.split.cards
    each = gib(plan.budget if budget is None else budget)
    if cards == device.count == 1:
        return Reason(AmountReason.OF_ONE, budget=each, device=device.name)
    of = device.count if device.count > cards else None
    kind = AmountReason.OF_NODES if device.kind == "cpu" else AmountReason.OF_SEVERAL
    return Reason(kind, cards=cards, of=of, device=device.name, budget=each)


def parts(fit: Fit) -> tuple[Reason, ...]:
    """Return the parts, such as ``weights 15.3 GiB, KV cache 144 KiB per token, the rest 1.9 to 4.2 GiB``."""
    weights, cache, states = (fit.term(part) for part in ("weights", "kv cache", "states"))
    rest = Amount.sum(t.amount for t in fit.terms if t not in {weights, cache, states})
    reasons = []
    if weights:
        reasons.append(Reason(AmountReason.WEIGHTS, size=gib(weights.amount.likely)))
    if cache:
        each = gib(cache.amount.likely / max(1, fit.load.context))
        reasons.append(Reason(AmountReason.CACHE, size=each))
    if states:
        reasons.append(Reason(AmountReason.STATES, size=gib(states.amount.likely)))
    if (why := is_measured(fit)) is not None:
        return (*reasons, Reason(AmountReason.REST_MEASURED, size=gib(rest.likely), why=why))
    most = gib(max(rest.high, GIB))
    return (*reasons, Reason(AmountReason.REST, likely=rest.likely / GIB, high=most))


def too_large(plan: Plan, *ways: Reason) -> Reason:
    """Return why not even a short context fits; ``ways`` are what would help."""
    case = plan.case
    short = case.fit(min(SHORTEST, case.context), plan.split)
    over = gib(max(short.total.likely + plan.spare - plan.budget, 0))
    return Reason(
        JudgementReason.TOO_LARGE, device=case.device.title, parts=parts(plan.fit), each=plan.split.cards > 1,
        over=over, budget=gib(plan.budget), ways=ways,
    )  # fmt: skip


def _finished(case: LoadCase, values: FitRequest) -> LoadCase:
    """Return the case with nothing left to choose; where vLLM chooses the context, with a short one."""
    free = values.get(CONTEXT) in ("auto", -1) and backends.of(case.backend).on_cards
    context = min(SHORTEST, case.context) if free else values.count(CONTEXT) or case.context
    values = replace(values, fixed=_Everything(), version=case.request.version)
    return replace(
        case, request=values, context=context, aim=NO_AIM,
        dtype=str(values.get(DTYPE) or "auto"),
    )  # fmt: skip


def _layout(case: LoadCase) -> Split:
    if not backends.of(case.backend).on_cards:
        return Split()
    tensor, pipeline, data = (case.request.count(key) or 1 for key in LAYOUT[:3])
    return Split(tensor, pipeline, data, case.request.get(EXPERTS) is True)


def _memory(plan: Plan) -> tuple[Word, Problem | None]:
    """Return whether one device holds what the values say, and else the value that is too much."""
    case, fit, device = plan.case, plan.fit, plan.case.device
    if device.memory is not None and plan.split.cards > device.count:
        fields = {"needed": plan.split.cards, "device": device.label, "count": device.count}
        return "too-large", Problem(_layout_key(case), Reason(JudgementReason.MORE_CARDS, **fields))
    if (space := case.space(fit)) is not None:
        return _cache(plan, space)
    total = fit.total
    if device.memory is None or total.likely + plan.spare <= plan.budget:
        return "fits", None
    fields = {"usable": usable(plan), "held": plan.length, "parts": parts(fit)}
    if total.low <= plan.budget:
        return "may-not-start", _may_not(CONTEXT, low=total.low, high=total.high, **fields)
    if plan.length < min(SHORTEST, case.context):
        return "too-large", Problem(CONTEXT, too_large(plan))
    why = Reason(JudgementReason.TOO_LONG, tokens=case.context, **fields)
    return "too-large" if backends.of(case.backend).on_cards else "may-not-start", Problem(CONTEXT, why)


def _cache(plan: Plan, space: int) -> tuple[Word, Problem | None]:
    """Return whether a cache of this size is large enough for the context, and small enough for the device.

    vLLM takes it whole, whatever the share of the card.
    """
    case, fit = plan.case, plan.fit
    key, beside = BLOCKS if case.request.count(BLOCKS) else CACHE, fit.total.likely - fit.cache
    if space < fit.cache:
        held = longest(case.shape, fit, beside + space)
        why = Reason(JudgementReason.CACHE_TOO_SMALL, size=gib(space), held=held, tokens=case.context)
        return "too-large", Problem(key, why)
    memory = case.device.memory or beside + space
    if beside + space <= memory:
        return "fits", None
    fields = {"usable": usable(plan, memory), "parts": parts(fit)}
    low, high = (n - fit.cache + space for n in (fit.total.low, fit.total.high))
    if low <= memory:
        return "may-not-start", _may_not(key, held=plan.length, low=low, high=high, **fields)
    fields |= {"size": gib(space), "left": gib(max(memory - beside, 0))}
    return "too-large", Problem(key, Reason(JudgementReason.CACHE_TOO_LARGE, **fields))


def _may_not(key: str, *, low: int, high: int, **fields: object) -> Problem:
    """Return a value that fits at the low end of the range alone."""
    return Problem(key, Reason(JudgementReason.MAY_NOT_START, low=gib(low), high=gib(high), **fields))


def _share(plan: Plan) -> Problem | None:
    """Return the share of a card that is not free at the start, or leaves too little beside it."""
    case, device, most = plan.case, plan.case.device, plan.case.most_share(plan.fit.load)
    if not case.planned or not device.is_card or device.memory is None or plan.share <= most:
        return None
    fields = {"share": plan.share, "device": device.name, "size": gib(plan.budget), "most": most}
    beside = gib(device.memory - int(most * device.memory))
    return Problem(SHARE, Reason(JudgementReason.LARGE_SHARE, beside=beside, **fields))


def _states(plan: Plan) -> Problem | None:
    """Return the number of sequences that is more than the blocks of their states."""
    blocks, running = plan.state_blocks(), plan.case.running(plan.split)
    if blocks is None or running <= blocks:
        return None
    return Problem(SLOTS, Reason(JudgementReason.STATE_BLOCKS, running=running, blocks=blocks))


def too_old(backend: str, device: Device) -> Reason | None:
    """Return why vLLM does not run on a card; ``None`` where it does."""
    capability = pages.compute_number(device.capability)
    if not backends.of(backend).planned or device.kind != "cuda" or (capability or OLDEST) >= OLDEST:
        return None
    return Reason(JudgementReason.OLD_CARD, device=device.name, capability=device.capability)


def _start(case: LoadCase, split: Split) -> tuple[Problem, ...]:
    """Return what ends the engine's start beside the memory."""
    if not backends.of(case.backend).on_cards:
        return ()
    old = too_old(case.backend, case.device)
    found = [] if old is None else [Problem(SHARE, old)]
    if case.planned and case.dtype == "bfloat16" and "bf16" not in case.device.native:
        found.append(Problem(DTYPE, Reason(JudgementReason.NO_BFLOAT16, device=case.device.name)))
    if not divides(case.config, case.shape, split.tensor, experts=split.experts, copies=split.data):
        found.append(Problem(_layout_key(case), Reason(JudgementReason.NOT_EVEN, cards=split.tensor)))
    if case.planned:
        found += [*_experts(case, split), *_fp8(case)]
    return tuple(found)


def _experts(case: LoadCase, split: Split) -> Iterator[Problem]:
    """Yield the setting that wants equally many experts on each card."""
    cards = split.tensor * split.data
    routed = count(Keys.of(text_config(case.config)))
    number = routed + (case.request.count(REDUNDANT) or 0)
    asks = {
        MOE_BACKEND: MEGA in str(case.request.get(MOE_BACKEND)),
        BALANCED: case.request.get(BALANCED) is True,
    }
    for key in (key for key, asked in asks.items() if asked):
        if routed and split.experts and number % cards:
            fields = {"count": number, "cards": cards, "key": key.partition(".")[2]}
            yield Problem(key, Reason(JudgementReason.EXPERTS, **fields))


def _fp8(case: LoadCase) -> Iterator[Problem]:
    """Yield a cache in 8 bits whose model asserts a setting of attention, or whose card lacks the kernel.

    vLLM's kernel of latent attention for cards before 8.9 has none in 8 bits, nor has that of processors
    (``triton_mla.py`` and ``cpu_mla.py`` of 0.32).
    """
    setting = FP8_NEEDS.get(str(case.config.get("model_type")))
    name = str(case.request.get(KV_DTYPE))
    plain = name.startswith("fp8") and name != "fp8_ds_mla"
    if setting is not None and plain and case.request.get(setting) is not True:
        yield Problem(KV_DTYPE, Reason(JudgementReason.FP8_CACHE, setting=setting.partition(".")[2]))
    latent = any(isinstance(cached, Latent) for cached in case.shape.caches)
    capability = pages.compute_number(case.device.capability)
    old = case.device.kind == "cpu" or (capability is not None and capability < EIGHT_BITS)
    if latent and plain and old:
        yield Problem(KV_DTYPE, Reason(JudgementReason.FP8_LATENT, device=case.device.name))


def _layout_key(case: LoadCase) -> str:
    """Return the first key of the layout that asks for several cards."""
    return next((key for key in LAYOUT if (case.request.count(key) or 1) > 1), LAYOUT[0])
