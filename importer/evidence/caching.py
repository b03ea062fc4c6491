"""What vLLM does by itself with prompts and their cache: prefixes, chunks, what the cache holds.

Said, and not written: these are the engine's own defaults (``is_prefix_caching_supported`` and its neighbour
in ``vllm/config/model.py``), and no file of a model says that they are wrong for it. What the cache holds is
written for a version that does not see it by itself.
"""

from __future__ import annotations

from importer.evidence import quantisation
from importer.evidence.abilities import Abilities, Machine
from importer.evidence.architecture import architectures, config_of, text_config
from importer.evidence.fact import Evidence
from importer.hub.snapshot import Snapshot

CACHE = "engine_args.kv_cache_dtype"
PREFIX, CHUNKS = "engine_args.enable_prefix_caching", "engine_args.enable_chunked_prefill"
WORDS = {
    "decoder": "a decoder",
    "hybrid": "a hybrid of attention and state-space or linear layers",
    "attention_free": "a model without attention",
    "encoder_decoder": "an encoder with a decoder",
}
FULL = ("attention", "full_attention")


def evidence(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    """The settings as they will be in force; nothing where the version or the architecture is not known."""
    return [*_prompts(snapshot, able, machine), *_cache(snapshot, able)]


def _cache(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Of a checkpoint with scales for a quantised KV cache, which vLLM sees by itself, old versions aside."""
    found = quantisation.read(snapshot)
    if able.engine != "vllm" or found is None or found.cache is None or not found.named:
        return []
    says = f"the checkpoint has scales for a KV cache in {found.cache}"
    if found.method == "compressed-tensors" and not able.takes_kv_scheme:
        return [
            Evidence("config", CACHE, found.cache, found.source, f"{says}, which {able.label} must be told")
        ]
    return [Evidence("engine", CACHE, found.cache, able.label, f"{says}, which {able.label} takes by itself")]


def _prompts(snapshot: Snapshot, able: Abilities, machine: Machine) -> list[Evidence]:
    way = attends(snapshot, able)
    if way is None or way not in able.prefix_caching:
        return []
    on = able.prefix_caching[way]
    says = f"{able.label} has prefix caching {'on' if on else 'off'} by itself for {WORDS[way]}"
    facts = [Evidence("engine", PREFIX, on, able.label, says)]
    chunked = way != "encoder_decoder"
    says = f"{able.label} has chunked prefill {'on' if chunked else 'off'} by itself for {WORDS[way]}"
    facts.append(Evidence("engine", CHUNKS, chunked, able.label, says))
    if machine.kind == "cpu" and text_config(config_of(snapshot)).get("kv_lora_rank") is not None:
        note = (
            "on processors without AMX it is off for models with multi-head latent attention (kv_lora_rank)"
        )
        facts += [Evidence("engine", f.key, f.value, f.source, note) for f in facts]
    return facts


def attends(snapshot: Snapshot, able: Abilities) -> str | None:
    """``decoder``, ``hybrid``, ``attention_free`` or ``encoder_decoder``, as vLLM sorts them."""
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
