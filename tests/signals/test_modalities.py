"""What goes in beside text, by the files; and what documents say of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot
from importer.signals.evidence import is_warning
from importer.signals.modalities import evidence, read_modalities

VLLM, MLX_VLM = registries.load_capabilities("vllm", "0.32.0"), registries.load_capabilities("mlx-vlm")


def snapshot(config: Any = None, *files: str, **texts: Any) -> Snapshot:
    told = {"config.json": json.dumps(config or {})} | {f"{k}.json": json.dumps(v) for k, v in texts.items()}
    return Snapshot("r", "someone/thing", None, tuple(RepoFile(f) for f in files), told)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"vision_config": {}, "video_token_id": 3}, ["image", "video"]),
        ({"audio_config": {}, "text_config": {}}, ["audio"]),
        ({"thinker_config": {"audio_config": {}, "vision_config": {}, "video_token_index": 1}},
         ["image", "video", "audio"]),
        ({"mm_vision_tower": "x"}, ["image"]),
        ({"visual": {}}, ["image"]),
        ({"vision_config": None}, []),
        ({"vision_config": {}, "audio_config": None, "audio_token_id": 3}, ["image"]),
        ({"vocab_size": 3}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_what_a_config_shows(config: Any, found: list[str]) -> None:
    assert [*read_modalities(snapshot(config))] == found


def test_processors_speak_where_a_config_does_not() -> None:
    told = snapshot({}, preprocessor_config={"image_processor_type": "X"})
    assert [*read_modalities(told)] == ["image"]
    both = snapshot({"vision_config": {}}, "video_preprocessor_config.json")
    assert [*read_modalities(both)] == ["image", "video"]
    assert read_modalities(snapshot({}, "video_preprocessor_config.json")) == {}


def said(config: Any, able: Any = VLLM) -> dict[str, Any]:
    return {e.key: e.value for e in evidence(snapshot(config), able)}


def test_vllm_has_names_and_limits_of_its_own() -> None:
    sees = {"vision_config": {}}
    known = said({**sees, "architectures": ["Qwen2_5_VLForConditionalGeneration"]})
    assert known == {"modalities": ["image", "video"], "limit_mm_per_prompt": {"image": 16, "video": 2}}
    assert said({**sees, "architectures": ["NeverHeardOf"]})["limit_mm_per_prompt"] == {"image": 16}
    one = next(a for a, traits in VLLM.architectures.items() if "image:1" in traits)
    assert said({**sees, "architectures": [one]})["limit_mm_per_prompt"]["image"] == 1


def test_what_only_some_models_take_is_up_to_the_files() -> None:
    some = next(a for a, traits in VLLM.architectures.items() if {"image", "audio?"} <= {*traits})
    assert "audio" not in said({"vision_config": {}, "architectures": [some]})["modalities"]
    hears = {"vision_config": {}, "audio_config": {}, "architectures": [some]}
    assert "audio" in said(hears)["modalities"]


@pytest.mark.parametrize(
    ("config", "files", "warned"),
    [
        ({}, (), True),
        ({}, ("preprocessor_config.json",), False),
        ({}, ("processor_config.json",), False),
        ({"auto_map": {"AutoModel": "a.B"}}, (), False),
        ({}, ("params.json",), False),
    ],
)
@pytest.mark.parametrize("weights", [("model.safetensors",), ()])
def test_images_need_the_settings_of_a_processor(
    config: Any, files: tuple[str, ...], warned: bool, weights: tuple[str, ...]
) -> None:
    facts = evidence(snapshot({"vision_config": {}, **config}, *weights, *files), VLLM)
    assert any(is_warning(e.reason) for e in facts) is (warned and bool(weights))
