"""vLLM's defaults for prompts and their cache: prefix caching, chunked prefill, dtype of the KV cache.

These facts are shown and not written to the document: they are the engine's own defaults
(``is_prefix_caching_supported`` and its neighbour in ``vllm/config/model.py``). The dtype of the cache is
written for a version that does not detect it.
"""

from __future__ import annotations

from importer import backends
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals import quantisation
from importer.signals.architecture import architectures, config_of, text_config
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import CacheReason

CACHE = "engine_args.kv_cache_dtype"
PREFIX, CHUNKS = "engine_args.enable_prefix_caching", "engine_args.enable_chunked_prefill"
FULL = ("attention", "full_attention")


def evidence(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    """Return the settings in force; empty where the version or the architecture is unknown."""
    return [*_prompts(snapshot, able, machine), *_cache(snapshot, able)]


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


def _prompts(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    way = attends(snapshot, able)
    if way is None or way not in able.prefix_caching:
        return []
    on = able.prefix_caching[way]
    reason = Reason(CacheReason.PREFIX_CACHING, engine=able.label, on=on, way=way)
    facts = [Evidence(Rule.ENGINE, PREFIX, on, able.label, reason)]
    chunked = way != "encoder_decoder"
    reason = Reason(CacheReason.CHUNKED_PREFILL, engine=able.label, on=chunked, way=way)
    facts.append(Evidence(Rule.ENGINE, CHUNKS, chunked, able.label, reason))
    if machine.kind == "cpu" and text_config(config_of(snapshot)).get("kv_lora_rank") is not None:
        note = Reason(CacheReason.LATENT_ATTENTION)
        facts += [Evidence(Rule.ENGINE, f.key, f.value, f.source, note) for f in facts]
    return facts


def attends(snapshot: Snapshot, able: Abilities) -> str | None:
    """Return vLLM's kind: ``decoder``, ``hybrid``, ``attention_free`` or ``encoder_decoder``."""
    named = next((a for a in architectures(snapshot) if a in able.architectures), None)
    if named is None:
        return None
    traits = able.architectures[named]
    config = config_of(snapshot)
    if "hybrid" in traits and not _only_attention(config.get("layer_types")):
        return "hybrid"
    if "attention-free" in traits:
        return "attention_free"
    return "encoder_decoder" if config.get("is_encoder_decoder") is True else "decoder"


def _only_attention(kinds: object) -> bool:
    return isinstance(kinds, list) and all(kind in FULL for kind in kinds)
