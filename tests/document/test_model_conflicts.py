"""Settings against a model's config: what vLLM refuses at its start, and what it takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from importer.document.argument_conflicts import conflicts
from importer.document.model_conflicts import model_conflicts
from importer.document.model_facts import ModelFacts, read_model_facts
from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sentences import render

DENSE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_attention_heads": 32,
    "num_hidden_layers": 36, "max_position_embeddings": 40960, "hidden_size": 4096, "vocab_size": 9,
}  # fmt: skip
VLLM = registries.load_capabilities("vllm", "0.33.0")
MTP = {"method": "mtp", "num_speculative_tokens": 1}


def snapshot(files: dict[str, Any]) -> Snapshot:
    return Snapshot("r", "someone/thing", None, (), {name: json.dumps(data) for name, data in files.items()})


def facts(**more: Any) -> ModelFacts:
    return read_model_facts(snapshot({"config.json": {**DENSE, **more}}), VLLM)


def found(model: ModelFacts, settings: dict[str, Any], **document: Any) -> dict[str, str]:
    listed = model_conflicts({"backend": "vllm", **document}, settings, model)
    return {".".join(path): render(reason) for path, reason in listed}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"tensor_parallel_size": 3}, "does not divide the model's 32 attention heads"),
        ({"engine_args.pipeline_parallel_size": 64}, "more than the model's 36 layers"),
        ({"engine_args.enable_expert_parallel": True}, "no experts"),
        ({"engine_args.speculative_config": MTP}, "no layers that mtp drafts with"),
        (
            {"engine_args.speculative_config": {"method": "dspark", "num_speculative_tokens": 7}},
            "no layers that dspark drafts with, and no model is named",
        ),
        ({"engine_args.model_impl": "terratorch"}, "Terratorch"),
        ({"max_model_len": 40961}, "context is 40960 tokens"),
        ({"quantization": "awq"}, "no quantisation awq; for plain weights there are fp8"),
    ],
)
def test_a_setting_that_the_model_rules_out(settings: dict[str, Any], problem: str) -> None:
    (said,) = found(facts(), settings).values()
    assert problem in said


@pytest.mark.parametrize(
    "settings",
    [
        {"engine_args.pipeline_parallel_size": 36}, {"engine_args.enable_expert_parallel": False},
        {"engine_args.speculative_config": {"method": "ngram"}},
        {"engine_args.speculative_config": {**MTP, "model": "a/b", "revision": "0" * 40}},
        {"max_model_len": 40960}, {"max_model_len": "auto"}, {"quantization": "fp8"}, {"dtype": "float16"},
    ],
)  # fmt: skip
def test_a_setting_that_it_takes(settings: dict[str, Any]) -> None:
    assert found(facts(), settings) == {}


@pytest.mark.parametrize(
    ("config", "beside"),
    [
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, {}),
        ({"text_config": {**DENSE, "quantization_config": {"quant_method": "unheard"}}}, {}),
        ({"compression_config": {"config_groups": {}}}, {}),
        ({}, {"quantize_config.json": {"bits": 4}}),
        ({}, {"quant_config.json": {"w_bit": 4}}),
    ],
)
def test_a_quantisation_of_the_checkpoint_where_the_weights_may_have_one(
    config: dict[str, Any], beside: dict[str, Any]
) -> None:
    files = {"config.json": {**DENSE, **config}, **beside}
    listed = tuple(RepoFile(name, 1) for name in files)
    texts = {name: json.dumps(data) for name, data in files.items()}
    model = read_model_facts(Snapshot("r", "someone/thing", None, listed, texts), VLLM)
    assert model.quantised
    assert found(model, {"quantization": "awq"}) == {}


def test_float16_of_a_type_that_overflows() -> None:
    model = facts(model_type="gemma3_text")
    assert "float16" in found(model, {"dtype": "half"})["dtype"]
    assert found(model, {"dtype": "bfloat16"}) == {}


def test_a_longer_context_needs_another_rotary_embedding_or_a_variable() -> None:
    long = {"max_model_len": 80000}
    linear = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e6}
    assert found(facts(rope_scaling=linear), long) == {}
    plain = snapshot({"config.json": DENSE})
    for changed in ({"rope_parameters": linear}, {"max_position_embeddings": 80000}):
        for settings in ({"engine_args": {"hf_overrides": changed}}, {"engine_args.hf_overrides": changed}):
            assert found(read_model_facts(plain, VLLM, settings), long) == {}
    assert (
        found(
            read_model_facts(plain, VLLM, {"engine_args.hf_overrides.max_position_embeddings": 80000}), long
        )
        == {}
    )
    yarn = linear | {"rope_type": "yarn", "original_max_position_embeddings": 32768}
    model = read_model_facts(plain, VLLM, {"engine_args": {"hf_overrides": {"rope_parameters": yarn}}})
    assert "hf_overrides.max_position_embeddings" in found(model, long)["max_model_len"]
    assert found(facts(), long, env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": 1}) == {}
    assert found(facts(), long, env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": 0}).keys() == {"max_model_len"}
    assert found(facts(max_position_embeddings=None, model_type="new"), long) == {}
    longrope = {"rope_type": "longrope", "factor": 32.0, "original_max_position_embeddings": 4096}
    assert found(facts(rope_scaling=longrope), {"max_model_len": 40960}) == {}


def test_heads_that_the_config_or_the_weights_name_draft() -> None:
    settings = {"engine_args.speculative_config": MTP}
    assert found(facts(mtp_num_hidden_layers=1), settings) == {}
    assert found(facts(model_type="qwen3_next", architectures=["Qwen3NextForCausalLM"]), settings) == {}
    index = {"weight_map": {"mtp.layers.0.weight": "a.safetensors"}}
    files = {"config.json": DENSE, "model.safetensors.index.json": index}
    assert found(read_model_facts(snapshot(files), VLLM), settings) == {}


@pytest.mark.parametrize("name", ["ep_size", "ep", "enable_eplb"])
def test_experts_of_sglang_under_every_name(name: str) -> None:
    value = True if name == "enable_eplb" else 3
    (said,) = found(facts(), {f"engine_args.{name}": value}, backend="sglang").values()
    assert said == "the model has no experts"
    assert found(facts(num_experts=8), {f"engine_args.{name}": value}, backend="sglang") == {}
    assert found(facts(), {"engine_args.ep_size": 1}, backend="sglang") == {}


def test_nothing_is_refused_of_a_model_that_is_not_known() -> None:
    settings = {"tensor_parallel_size": 3, "max_model_len": 9**9, "engine_args.enable_eplb": True}
    assert found(ModelFacts(), settings) == {}


def test_drafts_that_lie_in_the_checkpoint_need_no_second_repository() -> None:
    """DeepSeek V4 has DSpark's weights, and its config the settings; vLLM takes the target itself."""
    settings = {"engine_args.speculative_config": {"method": "dspark", "num_speculative_tokens": 7}}
    assert found(facts(dspark_block_size=5), settings) == {}
    assert [*conflicts({"backend": "vllm", "engine_args": settings})] == []
