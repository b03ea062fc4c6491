"""Inputs of a model other than text: images, video, audio."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from importer import backends
from importer.hub.content import weight_files
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals import comparison
from importer.signals.architecture import architectures, config_of
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule, warning
from importer.signals.reasons import InputReason

NAMES = ("image", "video", "audio")


# Keys of a config (or of the part about the language model) that only a model with this input has.
KEYS = {
    "image": re.compile(
        r"(?:mm_)?vision_(?:config|tower|encoder_config)|visual|image_token_(?:id|index)|img_processor"
    ),
    "video": re.compile(r"video_token_(?:id|index)"),
    "audio": re.compile(
        r"(?:audio|sound|speech)_(?:config|tower|encoder_config)|audio_token_(?:id|index)|audio_processor"
    ),
}


FILES = {"video_preprocessor_config.json": "video"}


PROCESSOR = "preprocessor_config.json"
PROCESSORS = (PROCESSOR, "processor_config.json")  # of transformers: for one modality, and for all


# Of one request: a chat sends all its images again with every turn.
MOST = {"image": 16, "video": 2, "audio": 4}


USUAL = 999  # vLLM's own, in every version since 0.14.1
TOWERS = {"image": "image", "video": "image", "audio": "audio"}  # the tower of each input


def read_modalities(snapshot: Snapshot) -> dict[str, Reason]:
    """Return each modality that the files describe and the tensors allow, with its reason; empty for text."""
    gone = comparison.absent(snapshot)
    return {name: why for name, why in _described(snapshot).items() if TOWERS[name] not in gone}


def _described(snapshot: Snapshot) -> dict[str, Reason]:
    shown: dict[str, Reason] = {}
    config = config_of(snapshot)
    parts = [
        config,
        *(v for k in ("thinker_config", "llm_config") if isinstance(v := config.get(k), Mapping)),
    ]
    for name, shape in KEYS.items():
        keys = [k for part in parts for k in part if shape.fullmatch(k) and part[k] is not None]
        absent = any(
            k.endswith("_config") and part[k] is None for part in parts for k in part if shape.fullmatch(k)
        )
        if keys and not absent:
            clearest = max(keys, key=lambda k: k.endswith("_config"))
            shown[name] = Reason(InputReason.KEY, file="config.json", key=clearest)
    for path, name in FILES.items():
        if shown and snapshot.has(path):
            shown.setdefault(name, Reason(InputReason.FILE, file=path))
    return {name: shown[name] for name in NAMES if name in shown} or _from_processor(snapshot)


def _from_processor(snapshot: Snapshot) -> dict[str, Reason]:
    """Return the modalities by the processor's settings, for a config without any."""
    settings = snapshot.json(PROCESSOR)
    keys = {"image": "image_processor_type", "audio": "feature_extractor_type"}
    return {
        name: Reason(InputReason.KEY, file=PROCESSOR, key=key)
        for name, key in keys.items()
        if isinstance(settings.get(key), str)
    }


def sees(snapshot: Snapshot) -> bool:
    """Return whether the model has inputs other than text; mlx-vlm is then its engine on MLX."""
    return bool(read_modalities(snapshot))


def evidence(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return the inputs other than text, and vLLM's limit of each for one request.

    Where the engine's version has the architecture, its own names count: it may accept video where a config
    has keys for images only.
    """
    described, gone = _described(snapshot), comparison.absent(snapshot)
    shown = {name: why for name, why in described.items() if TOWERS[name] not in gone}
    taken = _of_engine(able.traits(architectures(snapshot)), described) or dict.fromkeys(described, None)
    named = {name: limit for name, limit in taken.items() if TOWERS[name] not in gone}
    lost = tuple(name for name in taken if name not in named)
    if not described:
        return []
    if not named:
        return [_without_tower(snapshot, described), *_limits(able, {}, lost)]
    if backends.of(able.engine).text_only:
        reason = Reason(InputReason.ENGINE_TAKES_TEXT, engine=able.label, names=tuple(named))
        return [Evidence(Rule.ENGINE, "modalities", None, able.label, reason)]
    reason = Reason(InputReason.TAKES, names=tuple(named), shown=tuple(shown.values()))
    facts = [Evidence(Rule.CONFIG, "modalities", [*named], "config.json", reason)]
    if _lacks_processor(snapshot):
        lacks = Reason(InputReason.NO_PROCESSOR, engine=able.label, names=tuple(named), files=PROCESSORS)
        facts.append(Evidence(Rule.CONFIG, "modalities", [*named], "config.json", warning(lacks)))
    return [*facts, *_limits(able, named, lost)]


def _lacks_processor(snapshot: Snapshot) -> bool:
    """Return whether the weights lie without the settings of a processor of transformers.

    The repository's own code may bring a processor, and Mistral's own files describe one.
    """
    own = config_of(snapshot).get("auto_map") or snapshot.has("params.json")
    held = any(snapshot.has(path) for path in PROCESSORS)
    return not (own or held) and bool(weight_files(snapshot.files))


def _without_tower(snapshot: Snapshot, described: Mapping[str, Reason]) -> Evidence:
    """Return the evidence that a model takes text alone, whatever its config describes."""
    known = comparison.tensors(snapshot)
    count, source = (0, "") if known is None else (len(known.names), known.source)
    shown = tuple(described.values())
    reason = Reason(InputReason.NO_TENSOR, shown=shown, count=count, file=source, names=tuple(described))
    return Evidence(Rule.CONFIG, "modalities", None, source, reason)


def _limits(able: Abilities, named: Mapping[str, int | None], lost: tuple[str, ...]) -> list[Evidence]:
    """Return vLLM's limit of each input for a request; 0 for one without a tower, so that none is loaded."""
    if not backends.of(able.engine).limits_inputs:
        return []
    most = {name: min(MOST[name], limit or MOST[name]) for name, limit in named.items()}
    reason = Reason(InputReason.LIMITED, engine=able.label, usual=USUAL)
    if lost:
        reason = Reason(InputReason.SKIPPED, engine=able.label, names=lost)
    most |= dict.fromkeys(lost, 0)
    return [Evidence(Rule.IMPORTER, "limit_mm_per_prompt", most, able.label, reason)]


def _of_engine(traits: tuple[str, ...], shown: Container[str]) -> dict[str, int | None]:
    """Return the modalities with their limits among an architecture's traits, in the order of ``NAMES``.

    Examples: ``image``, ``image:1``, ``audio?``. A question mark: only some of its models have the input, so
    the files count.
    """
    limits = dict(trait.partition(":")[::2] for trait in traits)
    modalities = {
        name.removesuffix("?"): most for name, most in limits.items() if name[-1] != "?" or name[:-1] in shown
    }
    return {name: int(modalities[name]) if modalities[name] else None for name in NAMES if name in modalities}
