"""What vLLM's recipes say of a model: parsers, frontend, form of content, and fields that nobody looked at.

A recipe is a map (``recipes/models/ORG/MODEL.yaml`` of the sdist). Its prose is never read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

PARSERS = {"tool_parser": "--tool-call-parser", "reasoning_parser": "--reasoning-parser"}
SERVED = {"content_format": "--chat-template-content-format", "chat_template": "--chat-template"}
# Keys of ``model`` that are values of their own: ours, and the recipe's.
FACTS = {"since": "min_vllm_version", "frontend": "default_frontend", "rust": "rust_frontend"}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# Fields that were looked at, each by its key of the recipe: taken over above, or about hardware, strategies,
# installs and prose, that no table here has. Others are listed as new.
LOOKED_AT: Mapping[str, frozenset[str]] = {
    "": frozenset((
        "compatible_strategies", "default_strategy", "dependencies", "features", "guide", "hardware_notes",
        "hardware_opt_in_features", "hardware_overrides", "kv_cache_strategy_hardware", "kv_offload_support",
        "meta", "model", "omni", "opt_in_features", "presets", "strategy_hardware", "strategy_min_gpus",
        "strategy_overrides", "variants",
    )),
    "meta": frozenset((
        "date_added", "date_updated", "default_hardware", "default_variant", "description", "difficulty",
        "hardware", "performance_headline", "platforms", "provider", "related_recipes", "slug", "tasks",
        "title",
    )),
    "model": frozenset((
        "active_parameters", "architecture", "args", "base_args", "base_env", "context_length",
        "default_frontend", "docker_image", "docker_source", "flashinfer_autotune", "install",
        "min_vllm_version", "model_id", "nightly_required", "parameter_count", "rust_frontend", "smg_grpc",
        "supports_dcp",
    )),
    "features": frozenset((
        "args", "base_args", "default_mode", "description", "env", "hardware", "hardware_overrides", "label",
        "modes", "strategies",
    )),
    "variants": frozenset((
        "default_modes", "description", "docker_image", "extra_args", "extra_env", "hardware_overrides",
        "label", "min_vllm_version", "model_id", "nightly_required", "precision", "precision_hardware",
        "supported_hardware", "tp", "vram_minimum_gb",
    )),
}  # fmt: skip


def parsers(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return the parsers that its features name; none where two of them differ."""
    return _flags(recipe, PARSERS)


def served(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return form of content, chat template, frontends and the oldest version, where it has them."""
    model = _map(recipe.get("model"))
    facts = {key: str(model[name]) for key, name in FACTS.items() if model.get(name)}
    return _flags(recipe, SERVED) | facts


def variants(recipe: Mapping[str, Any], model: str) -> list[str]:
    """Return the ids of its variants with weights of their own."""
    made = _map(recipe.get("variants")).values()
    ids = {str(v["model_id"]) for v in made if isinstance(v, Mapping) and v.get("model_id")}
    return sorted(i for i in ids - {model} if HUB_ID.fullmatch(i))


def new_fields(recipe: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that nobody looked at, as ``part.field``."""
    for part, known in LOOKED_AT.items():
        inner = recipe if not part else _map(recipe.get(part))
        maps = (
            [m for m in inner.values() if isinstance(m, Mapping)]
            if part in {"features", "variants"}
            else [inner]
        )
        for name in {str(key) for one in maps for key in one} - known:
            yield f"{part}.{name}".lstrip(".")


def _flags(recipe: Mapping[str, Any], flags: Mapping[str, str]) -> dict[str, str]:
    """Return the one value of each flag in the arguments of the model and of its features."""
    places = [recipe.get("model"), *_map(recipe.get("features")).values()]
    lists = [p.get(key) for p in places if isinstance(p, Mapping) for key in ("args", "base_args")]
    words = [str(a) for one in lists if isinstance(one, list) for a in (*one, "")]
    arguments = [part for word in words for part in word.split("=", 1)]
    row = {}
    for field, flag in flags.items():
        names = {after for before, after in itertools.pairwise(arguments) if before == flag}
        if len(names) == 1:
            row[field] = names.pop()
    return row


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
