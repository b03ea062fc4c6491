"""Models that no engine here generates text with: by their architecture, or by a config that names none.

vLLM wraps classes outside its registry (its Transformers backend) where they are decoders: it has no
encoder with a decoder there, and a class without a head for text returns none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import FILE, architectures, config_of, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule

# Ends of class names of models that generate text.
GENERATES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
# Rates of sound that a speech model's config has at its top.
SOUND = ("sampling_rate", "sample_rate")
# The config and the weights that CTranslate2's converters write.
CT2_KEYS = frozenset({"alignment_heads", "suppress_ids", "lang_ids", "add_source_bos", "unk_token"})
CT2_WEIGHTS = "model.bin"


class UnservedReason(StrEnum):
    """Reasons why no engine here generates text with a model."""

    ENCODER_DECODER = "encoder-decoder"
    NO_HEAD = "no-head"
    NAMES_NOTHING = "names-nothing"


def by_architecture(snapshot: Snapshot, able: Abilities, *, speaks: bool) -> Evidence | None:
    """Return the evidence against classes that vLLM neither has nor can wrap; ``None`` where it may.

    ``speaks`` says that the model has a chat template. Code in the repository may generate.
    """
    named, config = architectures(snapshot), config_of(snapshot)
    if not able.architectures or not named or config.get("auto_map"):
        return None
    if any(a in known for a in named for known in (able.architectures, able.pooling, able.removed)):
        return None
    name = named[0]
    if config.get("is_encoder_decoder") is True:
        reason = Reason(UnservedReason.ENCODER_DECODER, name=name, engine=able.label)
        return Evidence(Rule.KIND_ARCHITECTURE, "kind", "encoder-decoder", FILE, reason, name)
    if name.endswith(GENERATES) or speaks:
        return None
    kind = "speech" if _sounds(config) else "no-text"
    reason = Reason(UnservedReason.NO_HEAD, name=name, engine=able.label)
    return Evidence(Rule.KIND_ARCHITECTURE, "kind", kind, FILE, reason, name)


def _sounds(config: Mapping[str, Any]) -> bool:
    return any(key in part for part in (config, text_config(config)) for key in SOUND)


def by_config(snapshot: Snapshot) -> Evidence | None:
    """Return the evidence against weights beside a config that names no model type and no architecture."""
    config = snapshot.json(FILE)
    if not config or config.get("model_type") or config.get("auto_map") or architectures(snapshot):
        return None
    weights = any(f.path.endswith((".safetensors", ".bin", ".pt", ".pth", ".npz")) for f in snapshot.files)
    if not weights or snapshot.has("params.json") or snapshot.has("model_index.json"):
        return None
    reason = Reason(UnservedReason.NAMES_NOTHING, file=FILE)
    return Evidence(Rule.KIND_ARCHITECTURE, "kind", "unnamed", FILE, reason, FILE)


def is_ctranslate2(snapshot: Snapshot) -> bool:
    """Return whether config and weights are of CTranslate2, which vLLM and MLX do not read."""
    plain = not any(f.path.endswith(".safetensors") for f in snapshot.files)
    return plain and snapshot.has(CT2_WEIGHTS) and bool(CT2_KEYS & snapshot.json(FILE).keys())
