"""Names of parsers and models: alike by their words, of the same version or an earlier one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.engines import registries
from importer.signals.name_likeness import Likeness, closest

VLLM = registries.load("vllm", "0.32.0")


@pytest.mark.parametrize(
    ("model", "tools", "reasoning"),
    [
        ("Qwen/Qwen3-32B", ["qwen3_json"], ["qwen3"]),  # qwen3_xml's class is Qwen3-Coder's
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", ["qwen3_coder"], ["qwen3"]),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", ["deepseek_v31"], ["deepseek_v3"]),
        ("deepseek_v32", ["deepseek_v32"], ["deepseek_v3"]),
        ("deepseek-ai/DeepSeek-R1-0528", [], ["deepseek_r1"]),
        ("acme/deepseekr1", [], ["deepseek_r1"]),
        ("zai-org/GLM-4.6", ["glm45"], ["glm45"]),
        ("zai-org/GLM-5.2", ["glm47"], ["glm47"]),
        ("zai-org/GLM-4-9B-0414", [], []),  # older than any
        ("zai-org/glm-4-9b-chat-hf", [], []),
        ("stepfun-ai/Step-3.7-Flash", ["step3p5"], ["step3p5"]),
        ("moonshotai/Kimi-K2.5", ["kimi_k2"], ["kimi_k2"]),
        ("openai/gpt-oss-20b", ["openai"], ["openai_gptoss"]),
        ("microsoft/Phi-4-mini-instruct", ["phi4_mini_json"], []),
        ("microsoft/phi-4", [], []),
        ("google/gemma-3-12b-it", [], []),
        ("LiquidAI/LFM2.5-1.2B-Instruct", ["lfm2"], []),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", [], []),
        ("tencent/Hy3", ["hy_v3"], ["hy_v3"]),
    ],
)
def test_the_closest_parsers(model: str, tools: list[str], reasoning: list[str]) -> None:
    assert [liked.parser for liked in closest(model, VLLM.classes("tool"))] == tools
    assert [liked.parser for liked in closest(model, VLLM.classes("reasoning"))] == reasoning


def test_how_alike() -> None:
    def grade(model: str, parser: str) -> Likeness:
        return closest(model, {parser: "P"})[0].likeness

    assert grade("Acme-Anvil-7B", "anvil") is Likeness.SAME  # 7B is a size
    assert grade("Acme-Anvil-7-Chat", "anvil") is Likeness.EARLIER
    assert grade("Anvil-7.5", "anvil7") is Likeness.MAJOR
    assert grade("Anvil-7.5", "anvil_v6p1") is Likeness.EARLIER


@pytest.mark.slow
@given(st.text(max_size=60), st.dictionaries(st.text(max_size=20), st.just("P"), max_size=4))
def test_any_text_is_like_registered_names_only(model: str, parsers: dict[str, str]) -> None:
    assert {liked.parser for liked in closest(model, parsers)} <= set(parsers)
