"""The fit on a device: context length, dtype, number of cards, share of their memory.

The rules, in this order:

1. The user's values are inputs and stay.
2. ``dtype`` is the checkpoint's, unless the device does not support it or vLLM rejects it.
3. The layout on all cards is the best plan of ``planner`` for what is asked; ``plan_settings`` writes it.
4. The vendor's context stays where it fits, if need be with a larger share of the cards or with keys in 8
   bits; else the longest context that fits. Where fewer than 4,096 tokens are safe, a start is risked for
   more.
5. Where not even a short one fits, the document is for the fewest cards of the kind that hold the model,
   with a warning. Where there are none, the warning names the missing bytes and other devices.
6. Without a device a document has no limit of any machine.

What each device holds of a model, judged as an import for that device judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory.devices import Device, Kind
from importer.memory.estimate_types import Fit, Unknown
from importer.memory.judgement import CONTEXT, JudgementReason, judge, parts, rounded, too_large, usable
from importer.memory.measured import Measured, is_measured
from importer.memory.parallelism import (
    FP8,
    KV_DTYPE,
    SHORTEST,
    SLOTS,
    FitRequest,
    LoadCase,
    Placed,
    cache_bytes,
)
from importer.memory.plan_settings import asked_facts, described_plan, fixed_layout, settings
from importer.memory.plans import NO_AIM, Aim, Plan, PlanReason, Split
from importer.memory.shape import Shape
from importer.memory.weights import Weights
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.architecture import FILE, model_types
from importer.signals.comparison import held_config
from importer.signals.evidence import Evidence, Rule, Source, is_warning, warning

if TYPE_CHECKING:
    from importer.memory.planner import Candidate


Verdict = Literal["fits", "shortened", "may-not-start", "too-large", "unknown", "neutral"]
USEFUL = 4096  # tokens; where fewer are safe, a start is risked for more
# Model types that vLLM rejects in float16 (_FLOAT16_NOT_SUPPORTED_MODELS in its config/model.py).
OVERFLOWS = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})


def _neutral_text(fields: Fields) -> str:
    holds = f"; {_or(fields['devices'])} hold {fields['tokens']:,} tokens" if fields["devices"] else ""
    return f"for no device in particular: {', '.join(fields['parts'])}{holds}"


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)


class FitReason(ReasonKind):
    """Reasons for the settings of a fit."""

    HOLDS = "holds", "{usable} hold {tokens:,} tokens: {parts}", "fits the device"
    WOULD_HOLD_ALL = "would-hold-all", "{held}; {devices:or} would hold all {tokens:,}"
    NEUTRAL = "neutral", _neutral_text
    MORE_CARDS = "more-cards", "{problem}; the document is for {more}", "does not fit"
    WOULD_HOLD = "would-hold", "{devices:or} would hold {tokens:,} tokens"
    QUANTISED_IS_SMALLER = "quantised-is-smaller", "a repository with quantised weights takes less"
    NO_BFLOAT16 = (
        "no-bfloat16",
        "{device} does not calculate in bfloat16; warning: float16 ends at 65,504",
        "device lacks BF16",
    )
    CAST = "cast", "the weights are in {stored}; vLLM takes {usual}", "from {stored}"
    STORED = "stored", "{file} says the weights are in {stored}", "{file}"
    NOT_KNOWN = "not-known", "not known what {device} holds: {why}", "fit unknown"
    NO_LENGTH = "no-length", "no file names a context length"


@frozen
class Choice:
    """The settings for a device, as evidence and with a reason.

    ``requested``  the context before the fit.
    ``fit``        the estimate with these settings, or with the shortest context for a too large model.
    ``pool``       of vLLM's cache: bytes of a ``block``, and ``blocks`` of one full sequence.
    ``holds``      named devices that would hold the model with the whole context.
    ``plans``      the best plan and the next-best ones; none where nothing is known or no device is named.
    ``device``     ``None`` where no device was named: the document has no limits.
    ``case``       what it was chosen for; ``None`` where nothing is known.
    """

    device: Device | None
    verdict: Verdict
    reason: Reason
    evidence: tuple[Evidence, ...] = ()
    requested: int | None = None
    weights: Weights | None = None
    placed: Placed | None = None
    fit: Fit | None = None
    pool: Mapping[str, int] | None = None
    holds: tuple[Device, ...] = ()
    plans: tuple[Plan, ...] = ()
    aim: Aim = NO_AIM
    case: LoadCase | None = None

    @property
    def measured(self) -> Measured | None:
        """Return the start whose figures the estimate has."""
        held = self.case is not None and self.fit is not None and is_measured(self.fit)
        return self.case.measured if self.case is not None and held else None

    def tries(self) -> tuple[Mapping[str, object], ...]:
        """Return settings that would start on this device, where those of the document do not, or may not."""
        if self.case is None or self.device is None or self.verdict not in ("too-large", "may-not-start"):
            return ()
        from importer.memory.tries import tries

        on_more = self.verdict == "too-large" and bool(self.plans)  # the chosen values are of more cards
        return tries(self.case, self.case.request if on_more else _values(self, self.case))

    def _blocks(self, size: int) -> int | None:
        """Return the blocks that vLLM prints at its start (``# GPU blocks``); ``None`` without a device."""
        if self.case is None or self.fit is None or self.placed is None or not size:
            return None
        beside = self.fit.total.likely - cache_bytes(self.fit)
        return max(self.case.space(self.fit) or self.placed.budget - beside, 0) // size

    @property
    def message(self) -> str:
        """Return the reason in one line."""
        return render(self.reason)

    def to_json(self) -> dict[str, object]:
        """Return the choice as receipts hold it."""
        data: dict[str, object] = {
            "device": None if self.device is None else self.device.to_json(),
            "verdict": self.verdict,
            "message": self.message,
            "wanted": self.requested,
            "chosen": {e.key: e.value for e in self.evidence if e.rule is Rule.FIT},
        }
        if self.weights is not None:
            data["weights"] = self.weights.to_json()
        if self.fit is not None:
            data["estimate"] = self.fit.to_json()
        if self.placed is not None and self.fit is not None:
            data |= {
                "cards": self.placed.split.cards,
                "budget": self.placed.budget,
                "spare": self.placed.spare,
            }
        if self.pool is not None:
            data["pool"] = {**self.pool, "all": self._blocks(self.pool["block"])}
        if self.holds:
            data["would_hold"] = [device.label for device in self.holds]
        if found := self.tries():
            data["try"] = [dict(change) for change in found]
        if self.plans:
            data["plans"] = [plan.to_json() for plan in self.plans]
        if self.aim:
            data["aim"] = asdict(self.aim)
        if self.measured is not None:
            data["measured"] = self.measured.to_json()
        return data


def choose(
    snapshot: Snapshot,
    shape: Shape | Unknown,
    weights: Weights | Unknown,
    device: Device | None,
    backend: str,
    request: FitRequest,
    aim: Aim | None = None,
    measured: Measured | None = None,
    memo: dict[tuple[object, ...], tuple[Device, ...]] | None = None,
    *,
    alone: bool = False,
) -> Choice:
    """Return the choice for a repository on ``device``, whose memory must be known; ``None``: on no device.

    ``aim`` is the goal, the number of sequences and their length. ``measured`` counts on the device of its
    run, with the settings of its run. ``alone``: no further cards are planned for, and no start is risked.
    """
    aim = aim or NO_AIM
    named = device or reference(backend)
    dtype = None if isinstance(shape, Unknown) else _dtype(snapshot, shape, named, backend, request)
    facts = () if dtype is None else (dtype,)
    if isinstance(shape, Unknown):
        return _not_known(device, shape.reason, (), request, aim)
    if isinstance(weights, Unknown):
        return _not_known(device, weights.reason, facts, request, aim)
    most = request.count(CONTEXT) or shape.context
    wanted = most if aim.context is None or request.is_fixed(CONTEXT) else aim.context
    if wanted is None:
        return _not_known(device, Reason(FitReason.NO_LENGTH), facts, request, aim)
    context = min(wanted, most or wanted)
    dtype_name = request.get("dtype") if dtype is None else dtype.value
    case = LoadCase(
        held_config(snapshot),
        shape,
        weights,
        named,
        backend,
        request,
        context,
        str(dtype_name or "auto"),
        aim,
        measured=measured if measured is not None and measured.on(named) else None,
        memo=memo,
    )
    if wanted > context:
        why = Reason(PlanReason.BEYOND, wanted=wanted, most=context)
        facts = (*facts, Evidence(Rule.FIT, CONTEXT, context, Source.FIT, warning(why)))
    if device is None:
        return _judged(_neutral(case, facts), case)
    if device.engine is not None and backends.of(backend).planned:
        why = Reason(PlanReason.OTHER_ENGINE, device=device.name, engine=device.engine, backend=backend)
        facts = (*facts, Evidence(Rule.FITS, "backend", backend, Source.FIT, warning(why)))
    from importer.memory.planner import deploy

    plans = deploy(case)
    facts = (*facts, *fixed_layout(plans[0]))
    return _judged(_chosen(case, plans, facts, alone=alone), case)


def _judged(choice: Choice, case: LoadCase) -> Choice:
    """Return the choice with the judgement of the document: the user's values and the chosen ones."""
    values = _values(choice, case)
    judged = judge(case, values)
    known = choice.verdict == "too-large"  # it says why, and what would hold the model
    facts = tuple(
        Evidence(Rule.FITS, problem.key, values.get(problem.key), Source.FIT, warning(problem.reason))
        for problem in (judged.start if known else judged.problems)
    )
    choice = replace(choice, evidence=(*choice.evidence, *facts), case=case)
    if known or judged.memory is None:
        return choice
    return replace(
        choice, verdict=judged.word, reason=facts[0].reason, fit=judged.fit, pool=case.pool(judged.fit),
        placed=None if choice.device is None else judged.placed,
    )  # fmt: skip


def _values(choice: Choice, case: LoadCase) -> FitRequest:
    """Return the user's values and the chosen ones."""
    chosen = {e.key: e.value for e in choice.evidence if e.rule is Rule.FIT}
    own = {k: v for k, v in chosen.items() if not case.request.is_fixed(k)}
    return replace(case.request, values={**case.request.values, **own})


def _chosen(
    case: LoadCase, plans: tuple[Candidate, ...], facts: tuple[Evidence, ...], *, alone: bool
) -> Choice:
    """Return the choice for the best plan, or for more cards where it holds not even a short context."""
    from importer.memory.planner import deploy, larger

    if plans[0].whole:
        return _fits(case, plans, facts)
    least, safe = min(SHORTEST, case.context), rounded(plans[0].context)
    if safe >= (least if alone else min(USEFUL, case.context)):
        return _shortened(case, plans, facts)
    if alone:
        return _too_large(case, facts)
    if case.device.is_card:
        enough = min(USEFUL, case.context) if safe >= least else least
        for risky in (replace(case, caution="half"), replace(case, caution="least")):
            tried = deploy(risky)
            if tried[0].whole:
                return _fits(risky, tried, facts)
            if rounded(tried[0].context) >= enough and not case.request.is_fixed(CONTEXT):
                return _shortened(risky, tried, facts)
    if safe >= least:
        return _shortened(case, plans, facts)
    more = larger(case)
    return _too_large(case, facts) if more is None else _on_more(case, more, facts)


def reference(backend: str) -> Device:
    """Return the kind of device that sizes refer to where none is named: without limits, in all formats."""
    kind: Kind = "cuda" if backends.of(backend).on_cards else "metal"
    return Device("", kind, None, 1.0, frozenset({"fp32", "fp16", "bf16", "fp8", "nvfp4"}), "no device")


def _neutral(case: LoadCase, facts: tuple[Evidence, ...]) -> Choice:
    """Return the sizes without a limit, and the named devices that hold the whole context."""
    fit = case.fit(case.context, Split())
    holds = case.would_hold()
    devices = tuple(device.label for device in holds)
    reason = Reason(FitReason.NEUTRAL, parts=parts(fit), devices=devices, tokens=case.context)
    if case.aim.context is not None and not case.request.is_fixed(CONTEXT):
        facts = (
            *facts,
            Evidence(Rule.FIT, CONTEXT, case.context, Source.FIT, asked_facts(case.context)),
        )
    return Choice(
        None,
        "neutral",
        reason,
        (*facts, *_requested(case)),
        case.context,
        case.weights,
        fit=fit,
        holds=holds,
        aim=case.aim,
    )


def _requested(case: LoadCase) -> tuple[Evidence, ...]:
    """Return the requested number of sequences, where no layout divides it."""
    slots = case.slots(Split())
    if slots is None or case.request.is_fixed(SLOTS):
        return ()
    return (Evidence(Rule.FIT, SLOTS, slots, Source.FIT, Reason(PlanReason.SLOTS, count=slots, copies=1)),)


def _fits(case: LoadCase, plans: tuple[Candidate, ...], dtype_facts: tuple[Evidence, ...]) -> Choice:
    best = plans[0]
    fit = best.case.fit(case.context, best.split)
    reason = _holds(case, best.placed, fit, case.context)
    facts = [*dtype_facts, *settings(best)]
    if case.aim.context is not None and not case.request.is_fixed(CONTEXT):
        facts.append(Evidence(Rule.FIT, CONTEXT, case.context, Source.FIT, asked_facts(case.context)))
    elif not case.request.is_fixed(CONTEXT) and case.request.get(CONTEXT) is not None:
        facts.append(Evidence(Rule.FITS, CONTEXT, case.context, Source.FIT, reason))
    return Choice(
        case.device, "fits", reason, tuple(facts), case.context, case.weights, best.placed, fit,
        case.pool(fit), plans=described_plan(plans, case.context), aim=case.aim,
    )  # fmt: skip


def _shortened(case: LoadCase, plans: tuple[Candidate, ...], dtype_facts: tuple[Evidence, ...]) -> Choice:
    best = plans[0]
    length = rounded(best.context)
    fit = best.case.fit(length, best.split)
    reason = _holds(case, best.placed, fit, length)
    shorter = warning(reason) if case.aim.context is not None else reason  # less than requested
    facts = [*dtype_facts, *settings(best), Evidence(Rule.FIT, CONTEXT, length, Source.FIT, shorter)]
    holds = case.would_hold()
    devices = tuple(device.label for device in holds)
    all_of_it = Reason(FitReason.WOULD_HOLD_ALL, held=reason, devices=devices, tokens=case.context)
    return Choice(
        case.device, "shortened", all_of_it if holds else reason, tuple(facts), case.context, case.weights,
        best.placed, fit, case.pool(fit), holds, described_plan(plans, length), case.aim,
    )  # fmt: skip


def _on_more(case: LoadCase, plans: tuple[Candidate, ...], dtype_facts: tuple[Evidence, ...]) -> Choice:
    """Return the choice for more cards of the kind: the document has their plan, and a warning."""
    best = plans[0]
    fit = best.case.fit(case.context, best.split)
    more = best.case.device
    others = case.would_hold()
    why = warning(Reason(FitReason.MORE_CARDS, problem=_overflow(case, others)[0], more=more.label))
    facts = (*dtype_facts, *settings(best), _on_context(case, why))
    holds = tuple(dict.fromkeys((more, *others)))
    return Choice(
        case.device, "too-large", why, facts, case.context, case.weights, best.placed, fit,
        best.case.pool(fit), holds, described_plan(plans, case.context), case.aim,
    )  # fmt: skip


def _too_large(case: LoadCase, dtype_facts: tuple[Evidence, ...]) -> Choice:
    holds = case.would_hold()
    problem, placed, fit = _overflow(case, holds)
    facts = (*dtype_facts, *_requested(case), _on_context(case, warning(problem)))
    return Choice(
        case.device, "too-large", warning(problem), facts, case.context, case.weights, placed, fit,
        holds=holds, aim=case.aim,
    )  # fmt: skip


def _on_context(case: LoadCase, why: Reason) -> Evidence:
    """Return the warning at the user's context, else at the requested one, else at the vendor's."""
    if case.request.is_fixed(CONTEXT):
        return Evidence(Rule.FITS, CONTEXT, case.request.get(CONTEXT), Source.FIT, why)
    if case.aim.context is not None:
        return Evidence(Rule.FIT, CONTEXT, case.context, Source.FIT, why)
    return Evidence(Rule.FITS, CONTEXT, case.request.get(CONTEXT) or case.context, Source.FIT, why)


def _overflow(case: LoadCase, others: tuple[Device, ...]) -> tuple[Reason, Placed, Fit]:
    """Return why the model does not fit, on the layout with the least of it on one card.

    ``others`` are devices that hold it.
    """
    from importer.memory.planner import named_by_card

    narrow = min(
        case.splits(), key=lambda s: case.fit(min(SHORTEST, case.context), s).total.likely + s.pipeline
    )
    placed = case.placed(narrow, case.shares()[0])
    holds = tuple(device.label for device in others)
    ways = [Reason(FitReason.WOULD_HOLD, devices=holds, tokens=case.context)] if holds else []
    if (named := named_by_card(case)) is not None:
        ways.append(Reason(PlanReason.SISTERS, names=named))
    elif not case.shape.quantisation:
        ways.append(Reason(FitReason.QUANTISED_IS_SMALLER))
    reason, fit = too_large(case, placed, *ways)
    return reason, placed, fit


def _holds(case: LoadCase, placed: Placed, fit: Fit, tokens: int) -> Reason:
    return Reason(FitReason.HOLDS, usable=usable(case.device, placed), tokens=tokens, parts=parts(fit))


def _dtype(
    snapshot: Snapshot, shape: Shape, device: Device, backend: str, request: FitRequest
) -> Evidence | None:
    """Return the checkpoint's dtype, or the nearest that the device supports and vLLM accepts."""
    if not backends.of(backend).planned or shape.dtype is None or request.is_fixed("dtype"):
        return None
    overflows = not OVERFLOWS.isdisjoint(model_types(snapshot))
    stored, short = shape.dtype, {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    plain = "float32" if overflows else "float16"
    if stored == "bfloat16" and "bf16" not in device.native:
        reason = Reason(FitReason.NO_BFLOAT16, device=device.name)
        return Evidence(Rule.FIT, "dtype", plain, Source.FIT, reason)
    if stored == "float32" or (stored == "float16" and overflows):
        usual = "bfloat16" if "bf16" in device.native else plain
        reason = Reason(FitReason.CAST, stored=stored, usual=usual)
        return Evidence(Rule.FIT, "dtype", usual, Source.FIT, reason)
    if stored in short:
        reason = Reason(FitReason.STORED, file=FILE, stored=stored)
        return Evidence(Rule.CONFIG, "dtype", stored, FILE, reason, stored)
    return None


def _not_known(
    device: Device | None, why: Reason, facts: tuple[Evidence, ...], request: FitRequest, aim: Aim
) -> Choice:
    """Return no settings for a device; a warning at the context where one is named."""
    reason = Reason(FitReason.NOT_KNOWN, device="a device" if device is None else device.label, why=why)
    if device is not None:
        facts = (*facts, Evidence(Rule.FITS, CONTEXT, request.get(CONTEXT), Source.FIT, warning(reason)))
    return Choice(device, "unknown", reason, facts, aim=aim)


COUNTS = (2, 4, 8)  # of one device that are tried, in one machine


class UnsuitedReason(ReasonKind):
    """Why an engine does not run on a device."""

    NOT_ON_APPLE = (
        "not-on-apple",
        "{backend} does not run on Apple's graphics; choose the backend mlx or another device",
    )
    ONLY_ON_APPLE = (
        "only-on-apple",
        "{backend} does not run on cards; choose the backend vllm or one of Apple's devices",
    )


class Answer(StrEnum):
    """Whether a device holds a model."""

    WHOLE = "whole"
    PART = "part"
    MAY_NOT_START = "may-not-start"
    NO = "no"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not-applicable"


ANSWERS = {
    "fits": Answer.WHOLE, "shortened": Answer.PART, "may-not-start": Answer.MAY_NOT_START,
    "too-large": Answer.NO,
}  # fmt: skip


@frozen
class DeviceAnswer:
    """The answer for one device.

    ``tokens``    of the longest sequence, ``None`` without any. ``fp8``  whether keys and values have 8 bits.
    ``whole_on``  the fewest of this device in one machine that hold the whole context.
    """

    device: Device
    answer: Answer
    reason: Reason
    tokens: int | None = None
    fp8: bool = False
    whole_on: Device | None = None

    def order(self) -> tuple[int, int, int]:
        """Return the key of an order: what holds the most of the model first, of those the least memory."""
        return [*Answer].index(self.answer), -(self.tokens or 0), self.device.memory or 0

    def to_json(self) -> dict[str, object]:
        """Return the answer as front ends have it."""
        return {
            "device": self.device.name, "kind": self.device.kind, "memory": self.device.memory,
            "answer": str(self.answer), "tokens": self.tokens, "kv_cache_dtype": FP8 if self.fp8 else "auto",
            "whole_on": None if self.whole_on is None else self.whole_on.label, "reason": render(self.reason),
        }  # fmt: skip


def unsuited(backend: str, device: Device) -> UnsuitedReason | None:
    """Return why an engine does not run on a device; ``None`` where it does."""
    if backends.of(backend).on_cards and device.kind == "metal":
        return UnsuitedReason.NOT_ON_APPLE
    return UnsuitedReason.ONLY_ON_APPLE if not backends.of(backend).on_cards and device.is_card else None


class Choose(Protocol):
    """Decides on a device as an import does."""

    def __call__(self, device: Device, *, alone: bool = False) -> Choice:
        """Return the choice."""


def answer(backend: str, device: Device, choose: Choose) -> DeviceAnswer:
    """Return the answer for one device."""
    if (unfit := unsuited(backend, device)) is not None:
        return DeviceAnswer(device, Answer.NOT_APPLICABLE, Reason(unfit, backend=backend))
    choice = choose(device)
    for one in (e.reason.fields.get("reason") for e in choice.evidence if e.rule is Rule.FITS):
        if isinstance(one, Reason) and one.kind is JudgementReason.OLD_CARD:
            return DeviceAnswer(device, Answer.NOT_APPLICABLE, one)
    found, why = ANSWERS.get(choice.verdict, Answer.UNKNOWN), choice.reason
    inner = why.fields.get("reason")
    why = inner if is_warning(why) and isinstance(inner, Reason) else why
    chosen = {e.key: e.value for e in choice.evidence if e.rule is Rule.FIT}
    fp8 = chosen.get(KV_DTYPE) == FP8
    context = chosen.get(CONTEXT, choice.requested)
    tokens = context if isinstance(context, int) and found is not Answer.NO else None
    found = Answer.PART if found is Answer.WHOLE and fp8 else found
    on = device if found is Answer.WHOLE else None if found is Answer.UNKNOWN else _whole_on(device, choose)
    return DeviceAnswer(device, found, why, tokens, fp8 and tokens is not None, on)


def answers(backend: str, devices: Iterable[Device], choose: Choose) -> Iterator[DeviceAnswer]:
    """Yield the answer for each device with a known memory."""
    return (answer(backend, device, choose) for device in devices if device.memory is not None)


def _whole_on(device: Device, choose: Choose) -> Device | None:
    more = (replace(device, count=n) for n in COUNTS if n <= device.node)
    return next((one for one in more if _is_whole(choose(one, alone=True))), None)


def _is_whole(choice: Choice) -> bool:
    """Return whether all of the context fits, with keys and values as the checkpoint has them."""
    return choice.verdict == "fits" and not any(e.key == KV_DTYPE and e.value == FP8 for e in choice.evidence)
