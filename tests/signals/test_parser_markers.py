"""Markers of parsers: generated for every registered parser, matched with text, and names elsewhere."""

from __future__ import annotations

import pytest

from importer import backends
from importer.engines import registries
from importer.signals.template_markers import fitting, load_parser_markers, of_same_markers, translate

# Parsers whose markers stand in a library, or that read calls without any.
WITHOUT = {
    "vllm": {"cohere_command3", "cohere_command4", "hf", "openai", "phi4_mini_json", "pythonic", "beam"},
    "mlx": set(),
    "mlx-vlm": set(),
}


@pytest.mark.parametrize("engine", backends.NAMES)
def test_every_parser_of_the_pinned_version_has_an_entry(engine: str) -> None:
    registry = registries.load(engine, registries.PINNED[engine])
    assert set(registry.names("tool")) <= set(load_parser_markers(engine, "tool"))
    assert set(registry.names("reasoning")) <= set(load_parser_markers(engine, "reasoning"))


@pytest.mark.parametrize("engine", sorted(WITHOUT))
def test_parsers_without_markers_are_known(engine: str) -> None:
    assert {p.name for p in load_parser_markers(engine, "tool").values() if not p.markers} == WITHOUT[engine]


@pytest.mark.parametrize(
    ("text", "needed", "parser"),
    [
        ("<tool_call>{}</tool_call>", ("<tool_call>", "</tool_call>"), "hermes"),
        (
            "<|im_start|><tool_call><function=f><parameter=a>1</parameter></function></tool_call>",
            ("<tool_call>", "<function=", "<parameter=", "</parameter>", "</function>", "</tool_call>"),
            "qwen3_coder",
        ),
        (
            "<｜DSML｜function_calls><｜DSML｜invoke name=</｜DSML｜function_calls>",
            ("<｜DSML｜function_calls>",),
            "deepseek_v32",
        ),
        ("<|tool_call_start|>[f()]<|tool_call_end|>", ("<|tool_call_start|>",), "lfm2"),
        ("<anvil>{}</anvil>", ("<anvil>",), None),
        ('{"name": "f"}', (), None),
    ],
)
def test_the_parser_of_markers(text: str, needed: tuple[str, ...], parser: str | None) -> None:
    assert next(iter(fitting("vllm", "tool", needed, text)), None) == parser


def test_a_parser_with_mostly_other_markers_is_no_match() -> None:
    """xlam knows [TOOL_CALLS] among the markers of other formats."""
    assert "xlam" not in fitting("vllm", "tool", ("[TOOL_CALLS]",), "[TOOL_CALLS][{}]")


@pytest.mark.parametrize(
    ("key", "name", "engine", "other", "found"),
    [
        ("tool_parser", "hermes", "vllm", "mlx", "json_tools"),
        ("tool_parser", "json_tools", "mlx", "vllm", "hermes"),
        ("tool_parser", "JSON_TOOLS", "mlx", "mlx-vlm", None),
        ("tool_parser", "step3p5", "vllm", "mlx", "qwen3_coder"),
        ("tool_parser", "kimi_k2", "vllm", "mlx-vlm", "kimi_k2"),
        ("tool_parser", "laguna", "mlx", "mlx-vlm", "glm47"),
        ("tool_parser", "lfm2", "vllm", "mlx", "pythonic"),
        ("reasoning_parser", "cohere_command3", "vllm", "mlx-vlm", "<|START_THINKING|>"),
        ("reasoning_parser", "qwen3", "vllm", "vllm-mlx", "qwen3"),
        ("reasoning_parser", "gemma4", "vllm", "mlx", "<|channel>thought"),
        ("tool_parser", "deepseek_v3", "vllm", "mlx", None),
        ("tool_parser", "../x", "mlx", "vllm", None),
        # Names that differ in the marks between their words; their formats are alike or read by set-up alone.
        ("tool_parser", "deepseek_v3", "vllm", "sglang", "deepseekv3"),
        ("tool_parser", "deepseek_v31", "vllm", "sglang", "deepseekv31"),
        ("tool_parser", "deepseek_v4", "vllm", "sglang", "deepseekv4"),
        ("reasoning_parser", "deepseek_v3", "vllm", "sglang", "deepseek-v3"),
        ("reasoning_parser", "deepseek_v4", "vllm", "sglang", "deepseek-v4"),
        ("reasoning_parser", "nemotron_v3", "vllm", "sglang", "nemotron_3"),
        ("reasoning_parser", "qwen3", "vllm", "mlx", "<think>"),
    ],
)
def test_a_parser_under_the_other_engines_name(
    key: str, name: str, engine: str, other: str, found: str | None
) -> None:
    assert translate(key, name, engine, other) == found


def test_a_name_that_the_version_lacks_is_not_taken() -> None:
    assert translate("tool_parser", "granite4", "vllm", "vllm-mlx", {"hermes", "gemma4"}) == "hermes"
    assert translate("tool_parser", "granite4", "vllm", "vllm-mlx", set()) is None


def test_a_parser_of_a_later_version_has_those_of_the_same_markers_beside_it() -> None:
    assert of_same_markers("tool_parser", "qwen3_json", "vllm", {"hermes", "qwen3_coder"}) == ["hermes"]
    assert of_same_markers("tool_parser", "pythonic", "vllm", {"openai", "pythonic"}) == []
    assert of_same_markers("tool_parser", "never-heard-of", "vllm", {"hermes"}) == []
