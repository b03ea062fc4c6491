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
from importer.memory.config_keys import Keys
from importer.memory.devices import GIB, Device
from importer.memory.estimate import longest
from importer.memory.estimate_types import Amount, Fit
from importer.memory.experts import count
from importer.memory.layers import Latent
from importer.memory.measured import is_measured
from importer.memory.parallelism import (
    BLOCKS,
    CACHE,
    EXPERTS,
    KV_DTYPE,
    LAYOUT,
    SHARE,
    SHORTEST,
    SLOTS,
    FitRequest,
    LoadCase,
    Placed,
    cache_bytes,
    divides,
)
from importer.memory.plan_settings import gib
from importer.memory.plans import NO_AIM, Split
from importer.reasons import Fields, Reason, ReasonKind, Text
from importer.signals.architecture import text_config

Word = Literal["fits", "may-not-start", "too-large"]
CONTEXT, DTYPE = "max_model_len", "dtype"
MOE_BACKEND, MEGA = "engine_args.moe_backend", "mega_moe"
BALANCED, REDUNDANT = "engine_args.enable_eplb", "engine_args.eplb_config.num_redundant_experts"
OLDEST, EIGHT_BITS = 70, 89  # compute capabilities that vLLM requires, and for a latent cache in 8 bits
STEPS = ((4096, 1024), (0, 256))  # from this number of tokens on, a context is a multiple of the second


def _several(what: str) -> Text:
    def says(fields: Fields) -> str:
        of = "" if fields["of"] is None else f" of {fields['of']}"
        return f"{fields['cards']}{of} {what}{fields['device']}, {fields['budget']} of each,"

    return says


class AmountReason(ReasonKind):
    """Reasons with amounts of memory on a device."""

    OF_NODES = "of-nodes", _several("memory nodes of ")
    OF_ONE = "of-one", "{budget} of {device}"
    OF_SEVERAL = "of-several", _several("")
    CACHE = "cache", "KV cache {size} per token"
    STATES = "states", "states {size}"
    REST = "rest", "the rest {likely:.1f} to {high}"
    REST_MEASURED = "rest-measured", "the rest {size}, {why}"
    WEIGHTS = "weights", "weights {size}"


def _too_large(fields: Fields) -> str:
    each = " on each" if fields["each"] else ""
    over = f"{fields['over']} more than the {fields['budget']} that can be used"
    parts = ", ".join(fields["parts"])
    return "; ".join((f"it does not fit {fields['device']}: {parts}{each}, {over}", *fields["ways"]))


class JudgementReason(ReasonKind):
    """Why an engine does not start with the values of a document, or may not."""

    TOO_LARGE = "too-large", _too_large, "does not fit"
    TOO_LONG = (
        "too-long",
        "{tokens:,} tokens do not fit; {usable} hold {held:,} tokens: {parts}",
        "context too long",
    )
    CACHE_TOO_SMALL = (
        "cache-too-small",
        "a cache of {size} holds {held:,} tokens, less than max_model_len, {tokens:,}",
        "cache too small",
    )
    CACHE_TOO_LARGE = (
        "cache-too-large",
        "{usable} have {left} beside the model, less than a cache of {size}: {parts}",
        "cache too large",
    )
    MORE_CARDS = "more-cards", "it takes {needed} cards, and {device} has {count}", "more cards"
    MAY_NOT_START = (
        "may-not-start",
        "it may not start: {parts} take {low} to {high} of {usable}; {held:,} tokens are safe",
        "may not start",
    )
    LARGE_SHARE = (
        "large-share",
        (
            "it may not start: vLLM ends where less than {share:g} of {device}, {size}, is free at its "
            "start, and {beside} are used beside it; set gpu_memory_utilization: {most:g}"
        ),
        "may not be free",
    )
    OLD_CARD = (
        "old-card",
        "vLLM does not run on {device}: it requires compute capability 7.0, and the card has {capability}",
        "card too old",
    )
    STATE_BLOCKS = (
        "state-blocks",
        (
            "{running:,} sequences at the same time may not start: vLLM needs a block of states for each, "
            "and {blocks:,} are safe; set max_num_seqs: {blocks}"
        ),
        "more than blocks",
    )
    NO_BFLOAT16 = (
        "no-bfloat16",
        "vLLM does not start with bfloat16 on {device}, since it lacks that format; use float16",
        "device lacks BF16",
    )
    NOT_EVEN = (
        "not-even",
        "states or blocks of scales do not divide by {cards}: vLLM ends while it loads the model",
        "uneven parts",
    )
    EXPERTS = (
        "experts",
        "{count} experts do not divide by the {cards} cards that share them: vLLM ends with {key}",
        "uneven experts",
    )
    FP8_CACHE = (
        "fp8-cache",
        "beside a cache in 8 bits, vLLM asserts {setting}: true for this model",
        "attention setting",
    )
    FP8_LATENT = (
        "fp8-latent",
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
    fit: Fit
    placed: Placed
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
    split = _layout(case)
    placed, fit = case.placed(split, case.shares()[0]), case.fit(case.context, split)
    word, problem = _memory(case, placed, fit)
    if problem is None and (problem := _states(case, placed, fit) or _share(case, placed, fit)) is not None:
        word = "may-not-start"
    return Judgement(word, fit, placed, problem, _start(case, split))


def rounded(context: int) -> int:
    """Return a context as documents have it, not longer than this one."""
    step = next(step for least, step in STEPS if context >= least)
    return context // step * step


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


def too_large(case: LoadCase, placed: Placed, *ways: Reason) -> tuple[Reason, Fit]:
    """Return why not even a short context fits, and the estimate of one; ``ways`` are what would help."""
    fit, whole = (case.fit(n, placed.split) for n in (min(SHORTEST, case.context), case.context))
    over = fit.total.likely + placed.spare - placed.budget
    reason = Reason(
        JudgementReason.TOO_LARGE, device=case.device.title, parts=parts(whole), each=placed.split.cards > 1,
        over=gib(max(over, 0)), budget=gib(placed.budget), ways=ways,
    )  # fmt: skip
    return reason, fit


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


def _memory(case: LoadCase, placed: Placed, fit: Fit) -> tuple[Word, Problem | None]:
    """Return whether one device holds what the values say, and else the value that is too much."""
    device, split = case.device, placed.split
    if device.memory is not None and split.cards > device.count:
        fields = {"needed": split.cards, "device": device.label, "count": device.count}
        return "too-large", Problem(_layout_key(case), Reason(JudgementReason.MORE_CARDS, **fields))
    if (space := case.space(fit)) is not None:
        return _cache(case, placed, fit, space)
    total = fit.total
    if device.memory is None or total.likely + placed.spare <= placed.budget:
        return "fits", None
    held = rounded(placed.longest.context)
    fields = {"usable": usable(device, placed), "held": held, "parts": parts(fit)}
    if total.low <= placed.budget:
        return "may-not-start", _may_not(CONTEXT, low=total.low, high=total.high, **fields)
    if held < min(SHORTEST, case.context):
        return "too-large", Problem(CONTEXT, too_large(case, placed)[0])
    why = Reason(JudgementReason.TOO_LONG, tokens=case.context, **fields)
    return "too-large" if backends.of(case.backend).on_cards else "may-not-start", Problem(CONTEXT, why)


def _cache(case: LoadCase, placed: Placed, fit: Fit, space: int) -> tuple[Word, Problem | None]:
    """Return whether a cache of this size is large enough for the context, and small enough for the device.

    vLLM takes it whole, whatever the share of the card.
    """
    key, beside = BLOCKS if case.request.count(BLOCKS) else CACHE, fit.total.likely - cache_bytes(fit)
    if space < cache_bytes(fit):
        held = longest(case.shape, fit, beside + space).context
        why = Reason(JudgementReason.CACHE_TOO_SMALL, size=gib(space), held=held, tokens=case.context)
        return "too-large", Problem(key, why)
    memory = case.device.memory or beside + space
    if beside + space <= memory:
        return "fits", None
    every, left = usable(case.device, replace(placed, budget=memory)), gib(max(memory - beside, 0))
    low, high = (n - cache_bytes(fit) + space for n in (fit.total.low, fit.total.high))
    if low <= memory:
        held = rounded(placed.longest.context)
        return "may-not-start", _may_not(key, usable=every, parts=parts(fit), held=held, low=low, high=high)
    fields = {"size": gib(space), "left": left, "usable": every, "parts": parts(fit)}
    return "too-large", Problem(key, Reason(JudgementReason.CACHE_TOO_LARGE, **fields))


def _may_not(key: str, *, low: int, high: int, **fields: object) -> Problem:
    """Return a value that fits at the low end of the range alone."""
    return Problem(key, Reason(JudgementReason.MAY_NOT_START, low=gib(low), high=gib(high), **fields))


def _share(case: LoadCase, placed: Placed, fit: Fit) -> Problem | None:
    """Return the share of a card that is not free at the start, or leaves too little beside it."""
    device, most = case.device, case.most_share(fit.load)
    if not case.planned or not device.is_card or device.memory is None or placed.share <= most:
        return None
    fields = {"share": placed.share, "device": device.name, "size": gib(placed.budget), "most": most}
    beside = gib(device.memory - int(most * device.memory))
    return Problem(SHARE, Reason(JudgementReason.LARGE_SHARE, beside=beside, **fields))


def _states(case: LoadCase, placed: Placed, fit: Fit) -> Problem | None:
    """Return the number of sequences that is more than the blocks of their states."""
    blocks, running = case.state_blocks(placed, fit), case.running(placed.split)
    if blocks is None or running <= blocks:
        return None
    return Problem(SLOTS, Reason(JudgementReason.STATE_BLOCKS, running=running, blocks=blocks))


def _start(case: LoadCase, split: Split) -> tuple[Problem, ...]:
    """Return what ends the engine's start beside the memory."""
    if not backends.of(case.backend).on_cards:
        return ()
    found = []
    capability = pages.compute_number(case.device.capability)
    if case.planned and case.device.kind == "cuda" and capability is not None and capability < OLDEST:
        why = Reason(JudgementReason.OLD_CARD, device=case.device.name, capability=case.device.capability)
        found.append(Problem(SHARE, why))
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
    setting, name = case.fp8_needs(), str(case.request.get(KV_DTYPE))
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
