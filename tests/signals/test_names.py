"""Names: normalising, matching at token boundaries, and what the tables say of well-known models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.hub.snapshot import Snapshot
from importer.sentences import render
from importer.signals.family import base_models, evidence, match
from importer.signals.name import Name, normalise
from importer.signals.tables import parser_table

SUFFIXES = [
    "-FP8", "-AWQ", "-GPTQ-Int4", "-4bit", "-8bit", "-bnb-4bit", "-GGUF", "-MLX", "-NVFP4", "-MXFP4",
    "-w4a16",    "-int8", "-quantized.w8a8", "-bf16", "_fp8", ".Q4_K_M.gguf", "-FP8-dynamic", "-AWQ-4bit",
    "-GPTQ-Int4-Int8Mix",
    "-3.0bpw-h6-exl2", "-MLX-bf16", "-qat-w4a16-ct", "-w-mxfp4-a-bf16", "-FP8-KV", "-i1-GGUF", "-GGUF-Q8_0",
    "-FP8-Static-PerTensor", "-gptqmodel-4bit", "-FP8-torchao",
]  # fmt: skip
# A model id, and the tool and reasoning parser the table has for it; "?" is not known.
KNOWN = [
    ("Qwen/Qwen3-8B", "hermes", "qwen3"),
    ("Qwen/Qwen3-8B-Base", None, None),
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", "hermes", None),
    ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder", None),
    ("Qwen/Qwen3.6-27B", "qwen3_coder", "qwen3"),
    ("Qwen/Qwen3-Brandnew-8B", "?", "?"),
    ("Qwen/QwQ-32B", "hermes", "deepseek_r1"),
    ("deepseek-ai/DeepSeek-R1-0528", "deepseek_v3", "deepseek_r1"),
    ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "?", "deepseek_r1"),
    ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek_v31", "deepseek_v3"),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4_pythonic", None),
    ("someone/Llama-3.1-8B-Roleplay", "?", "?"),
    ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes", None),
    ("Team-ACE/ToolACE-2-Llama-3.1-8B", "pythonic", None),
    ("google/gemma-4-31B-it", "gemma4", "gemma4"),
    ("nvidia/Gemma-4-26B-A4B-NVFP4", "gemma4", "gemma4"),
    ("mistralai/Mistral-Small-4-119B-2603", "mistral", "mistral"),
    ("microsoft/Phi-4-reasoning", None, "deepseek_r1"),
    ("ibm-granite/granite-4.2-3b", "qwen3_coder", "granite_thinking_parser"),
    ("zai-org/GLM-4.7-Flash", "glm47", "glm45"),
    ("MiniMaxAI/MiniMax-M2.5", "minimax_m2", "minimax_m2"),
    ("baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie45", "ernie45"),
    ("stepfun-ai/Step3-VL-10B", "hermes", "deepseek_r1"),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen3_coder", "nemotron_v3"),
    ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", None, "?"),
    ("nobody/knows-this", "?", "?"),
]  # fmt: skip


def snapshot(model_id: str, config: str = "", **info: object) -> Snapshot:
    texts = {"config.json": config} if config else {}
    return Snapshot(
        reference=model_id, model_id=model_id, revision="0" * 40, files=(), texts=texts, info=info
    )


@pytest.mark.parametrize(
    "text",
    [
        "Qwen/Qwen3-8B", "qwen/qwen3_8b", "https://huggingface.co/Qwen/Qwen3-8B", "hf.co/Qwen/Qwen3-8B/",
        "https://huggingface.co/Qwen/Qwen3-8B/tree/main", "https://hf.co/Qwen/Qwen3-8B/blob/main/config.json?x=1#L2",
        "hf://Qwen/Qwen3-8B@abc", "huggingface://Qwen/Qwen3-8B", "Qwen/Qwen3-8B@refs/pr/1",
        "Qwen/Qwen3-8B-GGUF:Q4_K_M",
        "https://huggingface.co/api/models/Qwen/Qwen3-8B", "models--Qwen--Qwen3-8B",
        "/home/me/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0123", " Qwen/Qwen3-8B-FP8 ",
    ],
)  # fmt: skip
def test_every_form_of_a_reference_gives_one_name(text: str) -> None:
    assert normalise(text) == Name("qwen", "qwen3-8b")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_how_weights_are_stored_is_no_part_of_the_name(suffix: str) -> None:
    assert normalise(f"org/Some-Model-7B-it{suffix}") == Name("org", "some-model-7b-it")


words = st.sampled_from(
    ["qwen3", "llama", "8b", "v0.3", "instruct", "fp8", "awq", "gguf", "", ".", "3.1", "models", "x"]
)
paths = st.lists(st.lists(words, min_size=1, max_size=5).map("-".join), min_size=1, max_size=4).map("/".join)

prefixes = st.sampled_from(["", "hf://", "https://huggingface.co/", "./", "hf.co/hf.co/", "models/"])


@given(st.text(max_size=80) | st.builds(str.__add__, prefixes, paths))
def test_normalise_never_raises_and_twice_is_once(text: str) -> None:
    once = normalise(text)
    assert normalise(f"{once.org}/{once.name}" if once.org else once.name) == once


@given(
    st.sampled_from([k[0] for k in KNOWN]), st.sampled_from(SUFFIXES),
    st.sampled_from([str.lower, str.upper]), st.booleans(),
)  # fmt: skip
def test_spelling_and_quantisation_change_nothing(
    name: str, suffix: str, case: type[str], swap: bool
) -> None:
    other = case(name + suffix)
    other = other.replace("-", "_") if swap else other
    assert match(parser_table(), other) == match(parser_table(), name)


@pytest.mark.parametrize(("name", "tool", "reasoning"), KNOWN)
def test_known_models(name: str, tool: str | None, reasoning: str | None) -> None:
    found = match(parser_table(), name)
    parsers = {} if found is None else found.parsers
    assert (parsers.get("tool_parser", "?"), parsers.get("reasoning_parser", "?")) == (tool, reasoning)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Qwen/Qwen3-Embedding-0.6B", "embedding"), ("google/embeddinggemma-300m", "embedding"),
        ("BAAI/bge-base-en-v1.5", "embedding"), ("BAAI/bge-reranker-v2-m3", "reranker"),
        ("Qwen/Qwen3-VL-Reranker-2B", "reranker"), ("Qwen/Qwen2.5-Math-PRM-7B", "reward"),
        ("openai/whisper-large-v3", "speech"), ("Qwen/Qwen3-TTS-12Hz-1.7B-Base", "speech"),
        ("black-forest-labs/FLUX.1-dev", "image"), ("RedHatAI/gpt-oss-20b-speculator.eagle3", "draft"),
        ("google/gemma-4-E4B-it-assistant", "draft"), ("Qwen/Qwen3Guard-Gen-8B", "guard"),
        ("meta-llama/Llama-Guard-4-12B", "guard"), ("deepseek-ai/DeepSeek-OCR-2", "ocr"),
        ("allenai/olmOCR-7B-0225-preview", "ocr"), ("google/translategemma-27b-it", "translation"),
        ("pfnet/plamo-3-nict-31b-base", "base"), ("meta-llama/Llama-3.2-1B", "base"),
        ("google/gemma-3-12b-pt", "base"), ("baidu/ERNIE-4.5-300B-A47B-PT", "chat"),
        ("FreedomIntelligence/openPangu-Embedded-7B", None),
    ],
)  # fmt: skip
def test_kinds_by_name(name: str, kind: str | None) -> None:
    found = match(parser_table(), name)
    assert (found.kind if found else None) == kind


def by_key(facts: list) -> dict[str, tuple[str, object]]:  # type: ignore[type-arg]
    return {e.key: (e.rule, e.value) for e in facts}


def test_a_name_that_says_nothing_leaves_it_to_the_base_model() -> None:
    told = evidence(snapshot("x/Mystery-8B", card={"base_model": ["Qwen/Qwen3-8B"]}))
    facts = by_key(told)
    assert facts["tool_parser"] == ("base-model-family", "hermes")
    assert facts["reasoning_parser"] == ("base-model-family", "qwen3")
    assert facts["parameters.temperature"] == ("sampling-table", 0.6)
    assert "Qwen/Qwen3-8B" in next(render(e.reason) for e in told if e.key == "tool_parser")


def test_name_or_path_is_heard_last_and_a_base_model_of_no_use_not_at_all() -> None:
    config = '{"_name_or_path": "mistralai/Mistral-Nemo-Instruct-2407"}'
    snap = snapshot("x/Mystery-12B", config, card={"base_model": "meta-llama/Llama-3.2-1B"})
    assert base_models(snap) == ("meta-llama/Llama-3.2-1B", "mistralai/Mistral-Nemo-Instruct-2407")
    assert by_key(evidence(snap))["tool_parser"] == ("base-model-family", "mistral")


def test_a_hidden_name_leaves_only_the_model_type() -> None:
    config = '{"model_type": "kimi_k25", "_name_or_path": "Qwen/Qwen3-8B"}'
    snap = snapshot("Qwen/Qwen3-8B", config, card={"base_model": "Qwen/Qwen3-8B"}, tags=["qwen3"])
    hidden = evidence(snap, ignore_name=True)
    assert {e.rule for e in hidden} == {"model-type"}
    assert by_key(hidden)["tool_parser"] == ("model-type", "kimi_k2")
    assert not any("Qwen" in render(e.reason) + e.quote + e.source for e in hidden)
    assert by_key(evidence(snap))["tool_parser"] == ("family-table", "hermes")


def test_known_none_is_evidence_and_not_known_is_silence() -> None:
    facts = by_key(evidence(snapshot("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B")))
    assert facts["tool_parser"] == ("family-table", None)
    assert "tool_parser" not in by_key(evidence(snapshot("nobody/knows-this")))
    assert evidence(snapshot("nobody/knows-this", card={"base_model": [None, 3, " "]})) == []


def test_a_family_alone_without_a_size_is_no_base_models_name() -> None:
    found = match(parser_table(), "llama3")
    assert found is not None
    assert found.kind == "chat"
    sized = match(parser_table(), "meta-llama/Meta-Llama-3-8B")
    assert sized is not None
    assert sized.kind == "base"
