"""vLLM's defaults for its cache of prompts: prefix caching, which estimates of memory need, and the dtype.

Prefix caching is shown and not written to the document: it is the engine's own
(``is_prefix_caching_supported`` in ``vllm/config/model.py``). The dtype is written for a version that does
not detect it.
"""

from __future__ import annotations

from importer import backends
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals import quantisation
from importer.signals.architecture import architectures, config_of
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import CacheReason

CACHE = "engine_args.kv_cache_dtype"
PREFIX = "engine_args.enable_prefix_caching"
FULL = ("attention", "full_attention")


def evidence(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return the settings in force; empty where the version or the architecture is unknown."""
    return [*_prompts(snapshot, able), *_cache(snapshot, able)]


def _cache(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return the dtype of the KV cache of a checkpoint with scales for it; old versions need it set."""
    quantised = quantisation.read(snapshot)
    if not backends.of(able.engine).adapts or quantised is None or not quantised.named:
        return []
    if quantised.cache is None:
        return []
    if quantised.method == "compressed-tensors" and not able.takes_kv_scheme:
        reason = Reason(CacheReason.SCALES_TO_SET, cache=quantised.cache, engine=able.label)
        return [Evidence(Rule.CONFIG, CACHE, quantised.cache, quantised.source, reason)]
    reason = Reason(CacheReason.SCALES_TAKEN, cache=quantised.cache, engine=able.label)
    return [Evidence(Rule.ENGINE, CACHE, quantised.cache, able.label, reason)]


def _prompts(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    way = attends(snapshot, able)
    if way is None or way not in able.prefix_caching:
        return []
    on = able.prefix_caching[way]
    reason = Reason(CacheReason.PREFIX_CACHING, engine=able.label, on=on, way=way)
    return [Evidence(Rule.ENGINE, PREFIX, on, able.label, reason)]


def attends(snapshot: Snapshot, able: Abilities) -> str | None:
    """Return vLLM's kind: ``decoder``, ``hybrid``, ``attention_free`` or ``encoder_decoder``."""
    named = next((a for a in architectures(snapshot) if a in able.architectures), None)
    if named is None:
        return None
    traits = able.architectures[named]
    config = config_of(snapshot)
    kinds = config.get("layer_types")
    if "hybrid" in traits and not (isinstance(kinds, list) and all(kind in FULL for kind in kinds)):
        return "hybrid"
    if "attention-free" in traits:
        return "attention_free"
    return "encoder_decoder" if config.get("is_encoder_decoder") is True else "decoder"
