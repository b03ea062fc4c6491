"""Memory and room for the KV cache, as the engine reports them, beside what was predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.validation.context import Context
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.promise import Promise

NAME = "memory-predicted"
LESSON = "Memory guessed from a model's name was off by half: engines died at the first long prompt."
TOLERANCE = 0.15  # of the prediction
SLACK = 64 * 2**20  # bytes besides: logs round
LIBRARIES = 2**30  # bytes of the whole besides: what its processes load is not the model's
MEND = "Choose max_model_len by what the engine reports, or leave it more memory."


def needs(_promise: Promise) -> str | None:
    """Whether there is a prediction shows in the receipt."""
    return None


def run(ctx: Context) -> Outcome:
    """Put both side by side; no request is sent."""
    return NotApplicable("nothing was predicted") if ctx.fit is None else judge(ctx.fit())


def judge(found: Mapping[str, Mapping[str, Any]]) -> Outcome:
    """Each figure has ``predicted``, ``reported`` and ``error``; heavier weights are bad, and less room.

    ``resident`` is all that the engine's processes hold, where the engine itself reports nothing.
    """
    if not found:
        return NotApplicable("the engine reports nothing that was predicted")
    told = "; ".join(_beside(name.replace("_", " "), figure) for name, figure in found.items())
    weights, room, whole = (found.get(name) for name in ("weights", "kv_cache_tokens", "resident"))
    if weights and weights["reported"] > weights["predicted"] * (1 + TOLERANCE) + SLACK:
        return Fail(f"the weights take more than predicted: {told}", "configuration", MEND)
    if room and room["reported"] < room["predicted"] * (1 - TOLERANCE):
        return Fail(f"the KV cache holds less than predicted: {told}", "configuration", MEND)
    if whole and whole["reported"] > whole["predicted"] * (1 + TOLERANCE) + LIBRARIES:
        return Fail(f"it takes more memory than predicted: {told}", "configuration", MEND)
    return Pass(told)


def _beside(name: str, figure: Mapping[str, Any]) -> str:
    predicted, reported, error = (figure[key] for key in ("predicted", "reported", "error"))
    if name.endswith("tokens"):
        return f"{name}: {predicted:,} predicted, {reported:,} reported, {error:+.1%}"
    return f"{name}: {predicted / 2**30:.2f} GiB predicted, {reported / 2**30:.2f} GiB reported"
