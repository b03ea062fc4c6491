"""The facts of vLLM's recipes: flags, values, model ids, hardware, versions. No sentence is kept.

``KEPT`` is the tree of keys that hold facts; ``*`` stands for any name, ``FACT`` for a value kept whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FACT = "fact"
Tree = Mapping[str, Any]

_OVERRIDE: Tree = {"args": FACT, "extra_args": FACT, "extra_env": FACT, "env": FACT}
_BY_HARDWARE: Tree = {"*": _OVERRIDE}
_ROLE: Tree = {
    "extra_args": FACT, "vllm_args": FACT, "env": FACT, "parallelism": FACT, "tp": FACT,
    "hardware_overrides": _BY_HARDWARE,
}  # fmt: skip
KEPT: Tree = {
    "meta": {"hardware": FACT, "default_hardware": FACT, "tasks": FACT},
    "model": {
        "model_id": FACT, "min_vllm_version": FACT, "nightly_required": FACT, "architecture": FACT,
        "parameter_count": FACT, "active_parameters": FACT, "context_length": FACT, "base_args": FACT,
        "base_env": FACT, "default_frontend": FACT, "rust_frontend": FACT,
    },
    "features": {"*": {
        **_OVERRIDE, "default_mode": FACT, "strategies": FACT, "hardware_overrides": _BY_HARDWARE,
        "modes": {"*": {
            **_OVERRIDE, "variants": FACT, "hardware": FACT, "hardware_overrides": _BY_HARDWARE,
        }},
    }},
    "opt_in_features": FACT,
    "hardware_opt_in_features": FACT,
    "variants": {"*": {
        **_OVERRIDE, "model_id": FACT, "precision": FACT, "precision_hardware": FACT,
        "vram_minimum_gb": FACT, "min_vllm_version": FACT, "supported_hardware": FACT, "tp": FACT,
        "default_modes": FACT, "hardware_overrides": _BY_HARDWARE,
    }},
    "compatible_strategies": FACT,
    "default_strategy": FACT,
    "strategy_hardware": FACT,
    "strategy_min_gpus": FACT,
    "hardware_overrides": _BY_HARDWARE,
    "strategy_overrides": {"*": {
        **_OVERRIDE, "vllm_args": FACT, "tp": FACT, "prefill": _ROLE, "decode": _ROLE,
        "hardware_overrides": _BY_HARDWARE,
    }},
    "omni": {"tasks": FACT},
}  # fmt: skip
PROFILE = ("brand", "generation", "gpu_count", "vram_gb", "scalable", "restricted")
STRATEGY: Tree = {
    "deploy_type": FACT, "orientation": FACT, "parallelism": FACT, "parallel_flag": FACT, "vllm_args": FACT,
    "remove_args": FACT, "env": FACT, "prefill": {"vllm_args": FACT, "env": FACT},
    "decode": {"vllm_args": FACT, "env": FACT},
}  # fmt: skip


def of_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of one recipe; keys without a fact are left out."""
    return _kept(recipe, KEPT)


def of_strategy(strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags and variables of one strategy."""
    return _kept(strategy, STRATEGY)


def of_profile(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return brand, generation, number of cards and memory (GB of the whole node) of one hardware profile."""
    return {key: profile[key] for key in PROFILE if profile.get(key) is not None}


def _kept(value: Any, tree: Tree) -> dict[str, Any]:
    """Return the part of a map that the tree names."""
    kept: dict[str, Any] = {}
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        below = tree.get(str(name), tree.get("*"))
        if below is None or inner in (None, "", [], {}):
            continue
        fact = inner if below == FACT else _kept(inner, below)
        if fact != {}:
            kept[str(name)] = fact
    return kept
