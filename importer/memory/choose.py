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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory.case import LoadCase
from importer.memory.devices import Device, Kind
from importer.memory.engine_keys import CONTEXT, SLOTS, FitRequest
from importer.memory.estimate_types import Fit, Unknown
from importer.memory.judgement import judge, parts, too_large, usable
from importer.memory.measured import Measured, is_measured
from importer.memory.plan_settings import (
    PlanReason,
    asked_facts,
    fixed_layout,
    named_by_card,
    plan_json,
    settings,
)
from importer.memory.planner import SHORTEST, Plan, deploy, larger, would_hold
from importer.memory.plans import NO_AIM, Aim, Split
from importer.memory.shape import Shape
from importer.memory.weights import Weights
from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render
from importer.signals.architecture import FILE, model_types
from importer.signals.comparison import held_config
from importer.signals.evidence import Evidence, Rule, Source, warning

Verdict = Literal["fits", "shortened", "may-not-start", "too-large", "unknown", "neutral"]
USEFUL = 4096  # tokens; where fewer are safe, a start is risked for more
# Model types that vLLM rejects in float16 (_FLOAT16_NOT_SUPPORTED_MODELS in its config/model.py).
OVERFLOWS = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})


def _neutral_text(fields: Fields) -> str:
    holds = f"; {_or(fields['devices'])} holds {fields['tokens']:,} tokens" if fields["devices"] else ""
    return f"for no device in particular: {', '.join(fields['parts'])}{holds}"


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)


class FitReason(ReasonKind):
    """Reasons for the settings of a fit."""

    HOLDS = "{usable} hold {tokens:,} tokens: {parts}", "fits the device"
    WOULD_HOLD_ALL = "{held}; {devices:or} would hold all {tokens:,}"
    NEUTRAL = (_neutral_text,)
    MORE_CARDS = "{problem}; the document is for {more}", "does not fit"
    WOULD_HOLD = "{devices:or} would hold {tokens:,} tokens"
    NO_BFLOAT16 = (
        "{device} does not calculate in bfloat16; warning: float16 ends at 65,504",
        "device lacks BF16",
    )
    CAST = "the weights are in {stored}; vLLM takes {usual}", "from {stored}"
    STORED = "{file} says the weights are in {stored}", "{file}"
    NOT_KNOWN = "not known what {device} holds: {why}", "fit unknown"
    NO_LENGTH = "no file names a context length"


@frozen
class Choice:
    """The settings for a device, as evidence and with a reason.

    ``plan``    of these settings, or with the shortest context for a too large model.
    ``plans``   the best plan and the next-best ones; none where nothing is known or no device is named.
    ``holds``   named devices that would hold the model with the whole context.
    ``device``  ``None`` where no device was named: the document has no limits.
    ``case``    what it was chosen for; ``None``, as ``plan``, where nothing is known.
    """

    device: Device | None
    verdict: Verdict
    reason: Reason
    evidence: tuple[Evidence, ...] = ()
    plan: Plan | None = None
    plans: tuple[Plan, ...] = ()
    holds: tuple[Device, ...] = ()
    case: LoadCase | None = None

    @property
    def fit(self) -> Fit | None:
        """Return the estimate with these settings."""
        return None if self.plan is None else self.plan.fit

    @property
    def pool(self) -> dict[str, int] | None:
        """Return vLLM's cache: bytes of a ``block``, and ``blocks`` of one full sequence."""
        return None if self.plan is None else self.plan.case.pool(self.plan.fit)

    @property
    def measured(self) -> Measured | None:
        """Return the start whose figures the estimate has."""
        held = self.case is not None and self.fit is not None and is_measured(self.fit)
        return self.case.measured if self.case is not None and held else None

    @property
    def values(self) -> FitRequest:
        """Return the user's values and the chosen ones."""
        request = FitRequest({}) if self.case is None else self.case.request
        own = {k: v for k, v in self.chosen.items() if not request.is_fixed(k)}
        return replace(request, values={**request.values, **own})

    @property
    def chosen(self) -> dict[str, object]:
        """Return the values that a document gets by the fit."""
        return {e.key: e.value for e in self.evidence if e.rule is Rule.FIT}

    def tries(self) -> tuple[Mapping[str, object], ...]:
        """Return settings that would start on this device, where those of the document do not, or may not."""
        if self.case is None or self.device is None or self.verdict not in ("too-large", "may-not-start"):
            return ()
        from importer.memory.tries import tries

        on_more = self.verdict == "too-large" and bool(self.plans)  # the chosen values are of more cards
        return tries(self.case, self.case.request if on_more else self.values)

    @property
    def message(self) -> str:
        """Return the reason in one line."""
        return render(self.reason)

    def to_json(self) -> dict[str, object]:
        """Return the choice as receipts hold it."""
        case, plan = self.case, self.plan
        data: dict[str, object] = {
            "device": None if self.device is None else self.device.to_json(),
            "verdict": self.verdict,
            "message": self.message,
            "wanted": None if case is None else case.context,
            "chosen": self.chosen,
        }
        if case is None or plan is None:
            return data
        data |= {"weights": case.weights.to_json(), "estimate": plan.fit.to_json()}
        if self.device is not None:
            data |= {"cards": plan.split.cards, "budget": plan.budget, "spare": plan.spare}
            if (pool := self.pool) is not None:
                free = plan.case.space(plan.fit) or plan.budget - plan.fit.total.likely + plan.fit.cache
                data["pool"] = {**pool, "all": max(free, 0) // pool["block"] if pool["block"] else None}
        if self.holds:
            data["would_hold"] = [device.label for device in self.holds]
        if found := self.tries():
            data["try"] = [dict(change) for change in found]
        if self.plans:
            data["plans"] = [plan_json(plan) for plan in self.plans]
        if case.aim:
            data["aim"] = asdict(case.aim)
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
    aim: Aim = NO_AIM,
    measured: Measured | None = None,
    *,
    alone: bool = False,
) -> Choice:
    """Return the choice for a repository on ``device``, whose memory must be known; ``None``: on no device.

    ``aim`` is the goal, the number of sequences and their length. ``measured`` counts on the device of its
    run, with the settings of its run. ``alone``: no other devices are looked for.
    """
    if isinstance(shape, Unknown):
        return _not_known(device, shape.reason, request)
    named = device or reference(backend)
    dtype = _dtype(snapshot, shape, named, backend, request)
    facts = () if dtype is None else (dtype,)
    if isinstance(weights, Unknown):
        return _not_known(device, weights.reason, request, facts)
    most = request.count(CONTEXT) or shape.context
    wanted = most if aim.context is None or request.is_fixed(CONTEXT) else aim.context
    if wanted is None:
        return _not_known(device, Reason(FitReason.NO_LENGTH), request, facts)
    context = min(wanted, most or wanted)
    case = LoadCase(
        held_config(snapshot), shape, weights, named, backend, request, context,
        str((request.get("dtype") if dtype is None else dtype.value) or "auto"), aim,
        measured=measured if measured is not None and measured.on(named) else None,
    )  # fmt: skip
    if wanted > context:
        why = Reason(PlanReason.BEYOND, wanted=wanted, most=context)
        facts = (*facts, Evidence(Rule.FIT, CONTEXT, context, Source.FIT, warning(why)))
    if device is None:
        return _judged(_neutral(case, facts), case)
    if device.engine is not None and case.planned:
        why = Reason(PlanReason.OTHER_ENGINE, device=device.name, engine=device.engine, backend=backend)
        facts = (*facts, Evidence(Rule.FITS, "backend", backend, Source.FIT, warning(why)))
    return _judged(_chosen(case, facts, alone=alone), case)


def _judged(choice: Choice, case: LoadCase) -> Choice:
    """Return the choice with the judgement of the document: the user's values and the chosen ones."""
    values = choice.values
    judged = judge(case, values)
    known = choice.verdict == "too-large"  # it says why, and what would hold the model
    facts = tuple(
        Evidence(Rule.FITS, problem.key, values.get(problem.key), Source.FIT, warning(problem.reason))
        for problem in (judged.start if known else judged.problems)
    )
    choice = replace(choice, evidence=(*choice.evidence, *facts))
    if known or judged.memory is None:
        return choice
    return replace(choice, verdict=judged.word, reason=facts[0].reason, plan=judged.plan)


def _chosen(case: LoadCase, facts: tuple[Evidence, ...], *, alone: bool) -> Choice:
    """Return the choice for the best plan, or for more cards where it holds not even a short context."""
    plans = deploy(case)
    facts = (*facts, *fixed_layout(plans[0]))
    least, safe = min(SHORTEST, case.context), plans[0].length
    if safe >= min(USEFUL, case.context):
        return _held(case, plans, facts, alone=alone)
    if case.device.is_card:
        enough = min(USEFUL, case.context) if safe >= least else least
        for risky in (replace(case, caution="half"), replace(case, caution="least")):
            tried = deploy(risky)
            if tried[0].whole or (tried[0].length >= enough and not case.request.is_fixed(CONTEXT)):
                return replace(_held(risky, tried, facts, alone=alone), case=case)
    if safe >= least:
        return _held(case, plans, facts, alone=alone)
    return _too_large(case, facts, alone=alone)


def reference(backend: str) -> Device:
    """Return the kind of device that sizes refer to where none is named: without limits, in all formats."""
    kind: Kind = "cuda" if backends.of(backend).on_cards else "metal"
    return Device("", kind, None, 1.0, frozenset({"fp32", "fp16", "bf16", "fp8", "nvfp4"}), "no device")


def _neutral(case: LoadCase, facts: tuple[Evidence, ...]) -> Choice:
    """Return the sizes without a limit, and the named devices that hold the whole context."""
    plan, holds = Plan(case, Split(), case.device.share), would_hold(case)
    devices = tuple(device.label for device in holds)
    reason = Reason(FitReason.NEUTRAL, parts=parts(plan.fit), devices=devices, tokens=case.context)
    facts = (*facts, *_context(case, asked_facts(case.context)), *_requested(case))
    return Choice(None, "neutral", reason, facts, plan, holds=holds, case=case)


def _requested(case: LoadCase) -> tuple[Evidence, ...]:
    """Return the requested number of sequences, where no layout divides it."""
    slots = case.slots(Split())
    if slots is None or case.request.is_fixed(SLOTS):
        return ()
    return (Evidence(Rule.FIT, SLOTS, slots, Source.FIT, Reason(PlanReason.SLOTS, count=slots, copies=1)),)


def _context(case: LoadCase, why: Reason) -> tuple[Evidence, ...]:
    """Return the requested context, which nobody fixed."""
    if case.aim.context is None or case.request.is_fixed(CONTEXT):
        return ()
    return (Evidence(Rule.FIT, CONTEXT, case.context, Source.FIT, why),)


def _held(case: LoadCase, plans: tuple[Plan, ...], facts: tuple[Evidence, ...], *, alone: bool) -> Choice:
    """Return the choice for a plan that holds the whole context or a part of it."""
    plan = plans[0] if plans[0].whole else plans[0].at(plans[0].length)
    tokens = plan.case.context
    reason = Reason(FitReason.HOLDS, usable=usable(plan), tokens=tokens, parts=parts(plan.fit))
    facts = (*facts, *settings(plans[0]))
    if plans[0].whole:
        found = _context(case, asked_facts(tokens))
        if not (found or case.request.is_fixed(CONTEXT) or case.request.get(CONTEXT) is None):
            found = (Evidence(Rule.FITS, CONTEXT, tokens, Source.FIT, reason),)
        return Choice(case.device, "fits", reason, (*facts, *found), plan, plans, case=case)
    shorter = warning(reason) if case.aim.context is not None else reason  # less than requested
    facts = (*facts, Evidence(Rule.FIT, CONTEXT, tokens, Source.FIT, shorter))
    holds = () if alone else would_hold(case)
    if devices := tuple(device.label for device in holds):
        reason = Reason(FitReason.WOULD_HOLD_ALL, held=reason, devices=devices, tokens=case.context)
    return Choice(case.device, "shortened", reason, facts, plan, plans, holds, case)


def _too_large(case: LoadCase, facts: tuple[Evidence, ...], *, alone: bool) -> Choice:
    """Return why the model does not fit, on the layout with the least of it on one card; the settings are
    those for more cards of the kind, where so many hold it.
    """
    holds, plans = ((), None) if alone else (would_hold(case), larger(case))
    devices, named = tuple(device.label for device in holds), named_by_card(case)
    ways = [Reason(FitReason.WOULD_HOLD, devices=devices, tokens=case.context)] if holds else []
    ways += [] if named is None else [Reason(PlanReason.SISTERS, names=named)]
    short = min(SHORTEST, case.context)
    narrow = min(case.splits(), key=lambda s: case.fit(short, s).total.likely + s.pipeline)
    plan = Plan(case, narrow, case.shares()[0])
    why = too_large(plan, *ways)
    if plans is None:
        facts, plan = (*facts, *_requested(case)), plan.at(short)
    else:
        plan = plans[0]
        more = plan.case.device
        why, facts = Reason(FitReason.MORE_CARDS, problem=why, more=more.label), (*facts, *settings(plan))
        holds = tuple(dict.fromkeys((more, *holds)))
    why = warning(why)
    found = _context(case, why) or (
        Evidence(Rule.FITS, CONTEXT, case.request.get(CONTEXT) or case.context, Source.FIT, why),
    )
    return Choice(case.device, "too-large", why, (*facts, *found), plan, plans or (), holds, case)


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
    device: Device | None, why: Reason, request: FitRequest, facts: tuple[Evidence, ...] = ()
) -> Choice:
    """Return no settings for a device; a warning at the context where one is named."""
    reason = Reason(FitReason.NOT_KNOWN, device="a device" if device is None else device.label, why=why)
    if device is not None:
        facts = (*facts, Evidence(Rule.FITS, CONTEXT, request.get(CONTEXT), Source.FIT, warning(reason)))
    return Choice(device, "unknown", reason, facts)
