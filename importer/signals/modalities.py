"""What a model takes beside text: images, video, audio."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from enum import StrEnum

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import architectures, config_of
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule

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
# Of one request: a chat sends all its images again with every turn.
MOST = {"image": 16, "video": 2, "audio": 4}
USUAL = 999  # vLLM's own, in every version since 0.14.1


class InputReason(StrEnum):
    """What shows that a model takes more than text."""

    KEY = "key"
    FILE = "file"
    TAKES = "takes"
    LIMITED = "limited"


def read(snapshot: Snapshot) -> dict[str, Reason]:
    """Return each modality with what shows it; empty for a model of text."""
    found: dict[str, Reason] = {}
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
            shown = max(keys, key=lambda k: k.endswith("_config"))
            found[name] = Reason(InputReason.KEY, file="config.json", key=shown)
    for path, name in FILES.items():
        if found and snapshot.has(path):
            found.setdefault(name, Reason(InputReason.FILE, file=path))
    return {name: found[name] for name in NAMES if name in found} or _from_processor(snapshot)


def _from_processor(snapshot: Snapshot) -> dict[str, Reason]:
    """Return what the processor's settings say, for a config that says nothing."""
    settings = snapshot.json(PROCESSOR)
    told = {"image": "image_processor_type", "audio": "feature_extractor_type"}
    return {
        name: Reason(InputReason.KEY, file=PROCESSOR, key=key)
        for name, key in told.items()
        if isinstance(settings.get(key), str)
    }


def sees(snapshot: Snapshot) -> bool:
    """Return whether mlx-vlm is the engine for it on MLX: images, video or sound go in."""
    return bool(read(snapshot))


def evidence(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return what goes in beside text, and how many of each vLLM lets one request hold.

    Where the engine's version has the architecture, its own names count: it may take video where a config
    speaks of images only.
    """
    shown = read(snapshot)
    if not shown:
        return []
    named = _of_engine(able.traits(architectures(snapshot)), shown) or dict.fromkeys(shown, None)
    reason = Reason(InputReason.TAKES, names=tuple(named), shown=tuple(shown.values()))
    facts = [Evidence(Rule.CONFIG, "modalities", [*named], "config.json", reason)]
    if able.engine == "vllm":
        most = {name: min(MOST[name], limit or MOST[name]) for name, limit in named.items()}
        reason = Reason(InputReason.LIMITED, engine=able.label, usual=USUAL)
        facts.append(Evidence(Rule.IMPORTER, "limit_mm_per_prompt", most, able.label, reason))
    return facts


def _of_engine(traits: tuple[str, ...], shown: Container[str]) -> dict[str, int | None]:
    """``image``, ``image:1`` and ``audio?`` among what is special of an architecture, in our order.

    A question mark stands at what only some of its models take; there the files count.
    """
    told = dict(trait.partition(":")[::2] for trait in traits)
    found = {
        name.removesuffix("?"): most for name, most in told.items() if name[-1] != "?" or name[:-1] in shown
    }
    return {name: int(found[name]) if found[name] else None for name in NAMES if name in found}
