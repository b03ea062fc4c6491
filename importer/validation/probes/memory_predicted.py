"""The probe of predicted memory: weights and room for the KV cache, as the engine reports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.reasons import Reason, ReasonKind
from importer.signals import evidence
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.remedy import Remedy


class MemoryPredictedReason(ReasonKind):
    """The reasons of ``memory-predicted``."""

    NOTHING_PREDICTED = "nothing-predicted", "nothing was predicted"
    NOTHING_REPORTED = "nothing-reported", "the engine reports nothing that was predicted"
    WEIGHTS = "weights", "the weights take more than predicted: {figures:;}"
    CACHE = "cache", "the KV cache holds less than predicted: {figures:;}"
    WHOLE = "whole", "it takes more memory than predicted: {figures:;}"
    AS_PREDICTED = "as-predicted", "{figures:;}"
    TOKENS = "tokens", "{name}: {predicted:,} predicted, {reported:,} reported, {error:+z.1%}"
    BYTES = "bytes", "{name}: {predicted:.2f} GiB predicted, {reported:.2f} GiB reported"


NAME = "memory-predicted"
LESSON = "Memory guessed from a model's name was off by half: engines died at the first long prompt."
TASKS = evidence.TASKS  # of every model
TOLERANCE = 0.15  # of the prediction
SLACK = 64 * 2**20  # bytes besides: logs round
LIBRARIES = 2**30  # bytes of the whole besides: what its processes load is not the model's
REMEDY = Reason(Remedy.CHOOSE_CONTEXT)


def needs(_promise: Expectations) -> Reason | None:
    """Return ``None``: only the receipt shows whether there is a prediction."""
    return None


def run(ctx: Context) -> Outcome:
    """Compare prediction and report; no request is sent."""
    return (
        NotApplicable(Reason(MemoryPredictedReason.NOTHING_PREDICTED))
        if ctx.fit is None
        else judge(ctx.fit())
    )


def judge(figures: Mapping[str, Mapping[str, Any]]) -> Outcome:
    """Judge figures with ``predicted``, ``reported`` and ``error``: heavier weights fail, and less room.

    ``resident`` is all memory of the engine's processes, where the engine itself reports nothing.
    """
    if not figures:
        return NotApplicable(Reason(MemoryPredictedReason.NOTHING_REPORTED))
    reasons = tuple(_beside(name.replace("_", " "), figure) for name, figure in figures.items())
    weights, room, whole = (figures.get(name) for name in ("weights", "kv_cache_tokens", "resident"))
    if weights and weights["reported"] > weights["predicted"] * (1 + TOLERANCE) + SLACK:
        return Fail(Reason(MemoryPredictedReason.WEIGHTS, figures=reasons), "configuration", REMEDY)
    if room and room["reported"] < room["predicted"] * (1 - TOLERANCE):
        return Fail(Reason(MemoryPredictedReason.CACHE, figures=reasons), "configuration", REMEDY)
    if whole and whole["reported"] > whole["predicted"] * (1 + TOLERANCE) + LIBRARIES:
        return Fail(Reason(MemoryPredictedReason.WHOLE, figures=reasons), "configuration", REMEDY)
    return Pass(Reason(MemoryPredictedReason.AS_PREDICTED, figures=reasons))


def _beside(name: str, figure: Mapping[str, Any]) -> Reason:
    predicted, reported, error = (figure[key] for key in ("predicted", "reported", "error"))
    if name.endswith("tokens"):
        return Reason(
            MemoryPredictedReason.TOKENS, name=name, predicted=predicted, reported=reported, error=error
        )
    return Reason(
        MemoryPredictedReason.BYTES, name=name, predicted=predicted / 2**30, reported=reported / 2**30
    )
