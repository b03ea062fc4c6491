"""What was predicted beside what the engine reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def compare(
    fit: Mapping[str, Any], context: int | None, weights: int | None, cache: int | None, tokens: int | None
) -> dict[str, Any]:
    """``fit`` as the receipt has it; bytes of weights and cache on one device, and the tokens in that cache.

    Each figure has ``predicted``, ``reported`` and ``error``, the relative difference. Empty where the engine
    ran with another context than the one that was predicted for, or said nothing.
    """
    estimate = fit.get("estimate") or {}
    if context is None or not estimate or estimate["load"]["context"] != context:
        return {}
    likely = {term["part"]: term["likely"] for term in estimate["terms"]}
    pool = fit.get("pool") or {}
    found = {}
    if weights and "weights" in likely:
        found["weights"] = beside(likely["weights"], weights)
    if cache and tokens and pool.get("blocks"):
        found["kv_cache_tokens"] = beside(int(cache // pool["block"] / pool["blocks"] * context), tokens)
    return found


def resident(fit: Mapping[str, Any], held: int | None) -> dict[str, Any]:
    """The whole estimate beside the bytes that an engine's processes hold; empty where either is unknown."""
    total = ((fit.get("estimate") or {}).get("total") or {}).get("likely")
    return {"resident": beside(total, held)} if total and held else {}


def beside(predicted: int, reported: int) -> dict[str, Any]:
    """Two figures, and by how much the prediction is above what was reported."""
    return {"predicted": predicted, "reported": reported, "error": round(predicted / reported - 1, 4)}
