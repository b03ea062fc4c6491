"""Vision and audio towers: a transformer over patches, and a projection into the language model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from importer.fit.keys import Keys
from importer.fit.layer import WHOLE, Part

CONFIGS = ("vision_config", "visual", "vision_tower_config", "audio_config", "audio_tower_config")
DEPTH = ("depth", "num_hidden_layers", "encoder_layers", "layers", "vt_num_hidden_layers", "n_layers")
WIDTH = ("hidden_size", "width", "d_model", "vt_hidden_size")
INNER = ("intermediate_size", "encoder_ffn_dim", "mlp_dim", "vt_intermediate_size")
GATED = {"silu", "swiglu"}
HINT = re.compile(r"(?:vision|visual|audio|image|mm)_(?:config|tower|encoder|model|size|feature)|projector")
COPIED = ("gemma3n", "gemma4")  # whose tower vLLM takes from transformers, whole on each device


def parts(config: Mapping[str, Any], hidden: int) -> tuple[Part, ...]:
    """What the towers of a config have, as far as its keys tell; an estimate, not a count."""
    owners = [config, *(c for c in (config.get("thinker_config"),) if isinstance(c, Mapping))]
    found = [Keys.inside(o, name) for o in owners for name in CONFIGS if isinstance(o.get(name), Mapping)]
    folded = Keys.of(config).size("scale_factor", "pixel_shuffle_factor", default=1)
    counts = [_tower(keys, hidden, folded) for keys in found]
    most = WHOLE if str(config.get("model_type") or "").startswith(COPIED) else None
    return tuple(Part("tower", n, most) for n in counts if n)


def hinted(config: Mapping[str, Any]) -> bool:
    """Whether some key speaks of a tower, however its authors name it."""
    return any(HINT.search(name) and value not in (None, False, {}) for name, value in config.items())


def _tower(keys: Keys, hidden: int, folded: int) -> int:
    depth, width = keys.count(*DEPTH), keys.count("embed_dim") or keys.count(*WIDTH)
    if not depth or not width or depth > 1000:
        return 0
    ratio = keys.get("mlp_ratio")
    inner = (
        _glm(keys)
        or keys.count(*INNER)
        or int(width * (ratio if isinstance(ratio, int | float) and 0 < ratio < 64 else 4))
    )
    matrices = 3 if keys.word("hidden_act", "hidden_activation") in GATED or _gated(keys) else 2
    layer = 4 * width * width + matrices * width * inner + 9 * width
    patch = keys.size("patch_size", "spatial_patch_size", default=14)
    embedded = keys.size("in_channels", "in_chans", "num_channels", default=3) * patch * patch * width
    embedded *= keys.size("temporal_patch_size", default=1)
    return (
        depth * layer + embedded + _positions(keys, patch) * width + _projection(keys, width, hidden, folded)
    )


def _glm(keys: Keys) -> int | None:
    """GLM-4V: the blocks are as wide as the output, and the named width is the projection's."""
    named = keys.size("intermediate_size") > 2 * keys.size(
        "out_hidden_size", default=keys.size("intermediate_size")
    )
    return keys.count("out_hidden_size") if named and keys.word("hidden_act") == "silu" else None


def _gated(keys: Keys) -> bool:
    return keys.word("model_type") in {"gemma4_vision", "pixtral", "qwen2_5_vl"}


def _positions(keys: Keys, patch: int) -> int:
    given = keys.count("num_position_embeddings", "position_embedding_size")
    image = keys.count("image_size")
    return given or ((image // patch) ** 2 if image and patch else 0)


def _projection(keys: Keys, width: int, hidden: int, folded: int) -> int:
    """Merged patches through two matrices; once more for each layer whose output is handed on (Qwen3-VL)."""
    if folded > 1:
        return width * folded**2 * hidden
    merged = keys.size("spatial_merge_size", default=1) ** 2 * width
    listed = keys.numbers("deepstack_visual_indexes")
    return (merged * merged + merged * keys.size("out_hidden_size", default=hidden)) * (1 + len(listed))
