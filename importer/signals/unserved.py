"""Models that no engine here generates text with: by their architecture, or by a config that names none.

vLLM wraps classes outside its registry (its Transformers backend) where they are decoders: it has no
encoder with a decoder there, and a class without a head for text returns none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.hub.reference import is_id
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import FILE, architectures, config_of, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.reasons import UnservedReason

# Ends of class names of models that generate text.
GENERATES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
# Rates of sound that a speech model's config has at its top.
SOUND = ("sampling_rate", "sample_rate")
# The config and the weights that CTranslate2's converters write.
CT2_KEYS = frozenset({"alignment_heads", "suppress_ids", "lang_ids", "add_source_bos", "unk_token"})
CT2_WEIGHTS = "model.bin"
TORCH = (".safetensors", ".bin", ".pt", ".pth", ".npz")
OTHERS = (".gguf", ".onnx", ".msgpack", ".h5", ".ckpt", ".tflite", ".nemo", ".mlmodel", ".pkl", ".ggml")
# Vocabularies: who has one has the repository's own files, and not only the settings that importer reads.
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")
TOKENIZER = "tokenizer_config.json"
GENERATION = "generation_config.json"
FORMS = ("params.json", "model_index.json")  # other files that say what weights are
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_"  # of peft, at the top
TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates/tool_use.jinja")


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
    weights = any(f.path.endswith(TORCH) for f in snapshot.files)
    if not weights or any(snapshot.has(form) for form in FORMS):
        return None
    reason = Reason(UnservedReason.NAMES_NOTHING, file=FILE)
    return Evidence(Rule.KIND_ARCHITECTURE, "kind", "unnamed", FILE, reason, FILE)


def by_adapter(snapshot: Snapshot) -> Evidence | None:
    """Return the evidence for an adapter (LoRA) without the model that it changes; ``None`` otherwise."""
    if not snapshot.has(ADAPTER):
        return None
    weights = [f.path for f in snapshot.files if f.path.endswith(TORCH + OTHERS)]
    whole = any(not path.rpartition("/")[2].startswith(ADAPTER_WEIGHTS) for path in weights)
    if whole or (not weights and _describes(snapshot)):
        return None
    return Evidence(
        Rule.KIND_FILES, "kind", "adapter", ADAPTER, Reason(UnservedReason.ADAPTS, file=ADAPTER), ADAPTER
    )


def reads_alone(name: str) -> bool:
    """Return whether a class of transformers reads pictures or sound, and makes neither."""
    return "For" in name and not name.endswith(GENERATES)


def of_adapter(snapshot: Snapshot) -> str | None:
    """Return the repository of the model that an adapter changes, by its settings."""
    named = snapshot.json(ADAPTER).get("base_model_name_or_path")
    return named if isinstance(named, str) and is_id(named) else None


def holds_nothing(snapshot: Snapshot) -> bool:
    """Return whether nothing shows a model: no weights, no config, and no settings of a tokenizer.

    A folder with the settings that importer reads may lack the weights, the config, or both. One with a
    vocabulary holds the repository's own files, so its weights and config would be there.
    """
    if _describes(snapshot) or any(f.path.endswith(TORCH + OTHERS) for f in snapshot.files):
        return False
    settings = template_place(snapshot) or snapshot.json(TOKENIZER)
    return not settings or any(snapshot.has(path) for path in VOCABULARIES)


def _describes(snapshot: Snapshot) -> bool:
    """Return whether the repository describes a model: by its config, or by other files for weights."""
    told = config_of(snapshot) or snapshot.json(GENERATION)
    return bool(told) or any(snapshot.has(form) for form in FORMS)


def template_place(snapshot: Snapshot) -> str | None:
    """Return the file with a chat template, or the Hub's own words; ``None`` without one."""
    listed = next((f for f in TEMPLATE_FILES if snapshot.has(f) or f in snapshot.texts), None)
    if listed:
        return listed
    folder = next((f.path for f in snapshot.files if f.path.startswith("additional_chat_templates/")), None)
    if folder:
        return folder
    for path in ("tokenizer_config.json", "processor_config.json"):
        if snapshot.json(path).get("chat_template"):
            return path
    config = snapshot.info.get("config")
    inside = config.get("tokenizer_config") if isinstance(config, dict) else None
    template = isinstance(inside, dict) and inside.get("chat_template")
    return Source.HUB if template else None


def only_gguf(snapshot: Snapshot) -> bool:
    """Return whether the only weights are GGUF files."""
    weights = {f.path.rpartition(".")[2].lower() for f in snapshot.files}
    return "gguf" in weights and not weights & {"safetensors", "bin", "pt", "pth", "npz"}


def is_ctranslate2(snapshot: Snapshot) -> bool:
    """Return whether config and weights are of CTranslate2, which vLLM and MLX do not read."""
    plain = not any(f.path.endswith(".safetensors") for f in snapshot.files)
    return plain and snapshot.has(CT2_WEIGHTS) and bool(CT2_KEYS & snapshot.json(FILE).keys())
