"""How weights are quantised, by the files; and which engine, version and device can load them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from importer.engines import registries
from importer.hub.snapshot import RepoFile, Snapshot
from importer.sentences import render
from importer.signals import caching, loading, quantisation
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.quantisation import Quantised
from importer.signals.reasons import BackendReason

CPU, H100, T4, V100 = Machine("cpu"), Machine("cuda", 90), Machine("cuda", 75), Machine("cuda", 70)
MLX = {"quantization": {"group_size": 64, "bits": 4}}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


def snapshot(config: Any = None, modelopt: Any = None) -> Snapshot:
    texts = {"config.json": json.dumps(config or {})}
    if modelopt is not None:
        texts["hf_quant_config.json"] = json.dumps(modelopt)
    return Snapshot("r", "someone/thing", None, (), texts)


def read(block: Any) -> Quantised | None:
    return quantisation.read(snapshot({"quantization_config": block}))


def tensors(weights: Any, inputs: Any = None, form: str = "x", **more: Any) -> dict[str, Any]:
    group = {"weights": weights, "input_activations": inputs}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"g": group}, **more}


INT4, INT8 = {"num_bits": 4, "type": "int", "group_size": 128}, {"num_bits": 8, "type": "int"}
FP8, FP4 = {"num_bits": 8, "type": "float"}, {"num_bits": 4, "type": "float", "group_size": 16}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": {"quant_method": "AWQ", "bits": 4, "group_size": 128}}, "awq"),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors"),
        ({"text_config": {"quantization_config": {"quant_method": "gptq"}}}, "gptq"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "mlx"),
        ({**MLX, "quantization_config": {"quant_method": "fp8"}}, "mlx"),
        ({"quantization_config": {"group_size": "$(id)", "bits": 4}}, None),
        ({"quantization_config": {"quant_method": "../x", "group_size": 64, "bits": 4}}, None),
        ({"quantization_config": "fp8"}, None),
        ({"quantization_config": {"quantization": {"quant_algo": "FP8"}}}, "modelopt"),
        ({}, None),
    ],
)
def test_the_method(given: dict[str, Any], found: str | None) -> None:
    facts = {e.key: e.value for e in quantisation.evidence(snapshot(given))}
    assert facts.get("quantization") == found


@pytest.mark.parametrize(
    ("block", "scheme", "bits"),
    [
        ({"group_size": 64, "bits": 6}, "affine-6bit", 6),
        ({"group_size": 32, "bits": 4, "mode": "mxfp4"}, "mxfp4", 4),
        ({"quant_method": "gptq", "bits": 8, "desc_act": True, "sym": True}, "w8a16-actorder", 8),
        ({"quant_method": "gptq", "bits": 4, "desc_act": False, "sym": False}, "w4a16-asym", 4),
        ({"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_awq"}, "w4a16-awq", 4),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block", 8),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8-static", 8),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4", 4),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, "fp8-static", 8),
        ({"quant_method": "modelopt_mixed", "quant_algo": "MIXED_PRECISION"}, "mixed", None),
        ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}, "nvfp4", 4),
        ({"quant_method": "", "quant_algo": "NVFP4"}, "nvfp4", 4),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}},
         "int4weightonly", 4),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, "mxfp4", 4),
        ({"quant_method": "hqq", "quant_config": {}}, None, None),
        (tensors(INT4), "w4a16", 4),
        (tensors(INT8, INT8), "w8a8-int8", 8),
        (tensors(INT4, {**INT8, "dynamic": True}), "w4a8", 4),
        (tensors(FP8, {**FP8, "dynamic": True}), "fp8-dynamic", 8),
        (tensors({**FP8, "strategy": "block"}, {**FP8, "dynamic": True}), "fp8-block", 8),
        (tensors(FP8), "fp8-w8a16", 8),
        (tensors(FP4, FP4), "nvfp4", 4),
        (tensors(FP4, None, "mxfp4-pack-quantized"), "mxfp4", 4),
        (tensors(INT4) | {"config_groups": {"a": {"weights": INT4}, "b": {"weights": FP8}}}, "mixed", None),
    ],
)  # fmt: skip
def test_the_scheme(block: dict[str, Any], scheme: str | None, bits: int | None) -> None:
    found = read(block)
    assert found is not None
    assert (found.scheme, found.bits) == (scheme, bits)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None}}, "modelopt"),
        ({"quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}}, None),
        ({}, None),
    ],
)
def test_the_file_of_modelopt(given: dict[str, Any], found: str | None) -> None:
    told = quantisation.evidence(snapshot(None, given))
    assert [e.value for e in told] == ([found, "nvfp4"] if found else [])
    assert all(e.source == "hf_quant_config.json" for e in told)


# which engine can load it


@pytest.mark.parametrize("engine", ["mlx", "vllm"])
def test_mistrals_own_config_alone_is_none_for_mlx(engine: str) -> None:
    files = (RepoFile("params.json"), RepoFile("consolidated.safetensors"))
    able = registries.load_capabilities(engine)
    found = loading.serves(Snapshot("r", "someone/thing", None, files, {}), able)
    assert (found.can is False) == (engine != "vllm")
    both = Snapshot("r", "someone/thing", None, (*files, RepoFile("config.json")), {})
    assert loading.serves(both, able).can is not False


def verdict(
    block: Any, engine: str = "vllm", machine: Machine = CPU, version: str | None = None, **config: Any
) -> loading.LoadVerdict:
    given = snapshot({**LLAMA, **config, "quantization_config": block})
    found = quantisation.read(given)
    assert found is not None
    return loading.loads(found, given, registries.load_capabilities(engine, version), machine)


AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}
BITSANDBYTES = {"quant_method": "bitsandbytes", "load_in_4bit": True}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}


@pytest.mark.parametrize(
    ("block", "engine", "machine", "can", "says"),
    [
        (AWQ, "vllm", CPU, True, "on processors"),
        (AWQ, "vllm", V100, False, "this machine has 7.0"),
        (NVFP4, "vllm", CPU, False, "it needs an NVIDIA card of compute capability 7.5 or more"),
        ({"quant_method": "gptq", "bits": 3}, "vllm", H100, False, "refuses"),
        (MLX["quantization"], "vllm", H100, False, "does not read mlx"),
        ({"quant_method": "quark"}, "vllm", CPU, None, "on processors is not known"),
        (MLX["quantization"], "mlx", CPU, True, "reads mlx"),
        (AWQ, "mlx-vlm", CPU, False, "does not read awq"),
        (NVFP4, "mlx", CPU, True, "detects it by itself"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "mlx", CPU, False, "NVFP4 alone"),
        (tensors(FP8, FP8, "float-quantized"), "mlx", CPU, False, "in the format float-quantized"),
        ({"quant_method": "fp8"}, "mlx", CPU, None, "not known"),
        (BITSANDBYTES, "vllm-mlx", CPU, False, "vllm-mlx 0.6.0 does not read bitsandbytes"),
        ({**AWQ, "bits": 8}, "mlx", CPU, False, "reads 4 bits alone, not awq (w8a16)"),
        ({**AWQ, "quant_method": "gptq"}, "vllm-mlx", CPU, None, "no file that was read names the tensors"),
    ],
)
def test_who_can_load_what(block: Any, engine: str, machine: Machine, can: bool | None, says: str) -> None:
    found = verdict(block, engine, machine)
    assert found.can is can, found
    assert says in ("" if found.reason is None else render(found.reason))


@pytest.mark.parametrize("engine", ["mlx", "vllm-mlx"])
@pytest.mark.parametrize(("tensor", "can"), [("model.layers.0.q.g_idx", False), ("model.layers.0.q", True)])
def test_tensors_that_the_loader_refuses(engine: str, tensor: str, can: bool) -> None:
    given = snapshot({**LLAMA, "quantization_config": {**AWQ, "quant_method": "gptq"}})
    index = json.dumps({"weight_map": {tensor: "model.safetensors"}})
    given = replace(given, texts={**given.texts, "model.safetensors.index.json": index})
    facts = loading.evidence(given, registries.load_capabilities(engine), CPU)
    assert ["warning: " in render(f.reason) for f in facts if f.key == "quantization"] == [not can]


def test_a_model_that_sees_is_read_by_the_other_library_of_vllm_mlx() -> None:
    seen = verdict(tensors(FP8, FP8, "float-quantized"), "vllm-mlx", vision_config={"hidden_size": 8})
    assert seen.can is True


@pytest.mark.parametrize(("engine", "warned"), [("vllm-mlx", True), ("sglang", False)])
def test_quantised_weights_of_an_engine_that_is_not_recorded(engine: str, warned: bool) -> None:
    """SGLang ends its start where it reads them not; vllm-mlx drops the scales and answers."""
    given = snapshot({**LLAMA, "quantization_config": AWQ})
    facts = loading.evidence(given, Abilities(engine=engine, version="99"), CPU)
    assert [render(f.reason).startswith("warning: ") for f in facts] == [True] * warned


def test_versions_differ() -> None:
    assert verdict(BITSANDBYTES, machine=H100, version="0.14.1").can is True
    assert verdict(BITSANDBYTES, machine=H100, version="0.32.0").can is False
    assert verdict({"quant_method": "gptq", "bits": 3}, machine=H100, version="0.33.0").can is True


def test_experts_are_tried_apart() -> None:
    block = tensors(FP8, {**FP8, "dynamic": True})
    assert verdict(block).can is True
    assert verdict(block, num_experts=8).can is False


def test_modelopt_without_a_name_is_not_seen_by_vllm() -> None:
    given = snapshot(LLAMA, {"quantization": {"quant_algo": "NVFP4"}})
    facts = loading.evidence(given, registries.load_capabilities("vllm"), H100)
    told = "nothing in the files names modelopt where it is looked for"
    assert [render(e.reason) for e in facts] == [f"warning: vllm 0.32.0 takes the weights for whole: {told}"]


# the cache


def test_a_method_on_its_way_out_is_allowed() -> None:
    told = snapshot({**LLAMA, "quantization_config": {"quant_method": "fbgemm_fp8"}})
    facts = loading.evidence(told, registries.load_capabilities("vllm"), H100)
    assert (loading.ALLOW, True) in {(e.key, e.value) for e in facts}


@pytest.mark.parametrize(
    ("block", "version", "rule"),
    [
        ({**NVFP4, "kv_cache_quant_algo": "FP8"}, "0.32.0", "engine"),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}},
         "0.14.1", "engine"),
        (tensors(FP8, FP8, kv_cache_scheme=FP8), "0.32.0", "engine"),
        (tensors(FP8, FP8, kv_cache_scheme=FP8), "0.14.1", "config"),
        ({**NVFP4, "kv_cache_quant_algo": None}, "0.32.0", None),
    ],
)  # fmt: skip
def test_what_the_cache_holds(block: Any, version: str, rule: str | None) -> None:
    given = snapshot({**LLAMA, "quantization_config": block})
    facts = caching.evidence(given, registries.load_capabilities("vllm", version))
    assert [(e.value, e.rule) for e in facts if e.key == caching.CACHE] == ([("fp8", rule)] if rule else [])


# the backend

TEXT_ONLY = min(
    registries.load_capabilities("mlx").model_types - registries.load_capabilities("mlx-vlm").model_types
)


@pytest.mark.parametrize(
    ("config", "platform", "machine", "chosen"),
    [
        ({**LLAMA, **MLX}, "linux", CPU, "mlx"),
        ({"model_type": TEXT_ONLY, **MLX, "vision_config": {}}, "linux", H100, "mlx"),
        ({"model_type": "qwen3_vl", **MLX, "vision_config": {}}, "linux", H100, "mlx-vlm"),
        ({**LLAMA, "quantization_config": NVFP4}, "linux", CPU, "vllm"),  # another machine's vLLM can
        ({**LLAMA, "quantization_config": {"quant_method": "bitnet"}}, "linux", CPU, "mlx"),
        ({**LLAMA, "quantization_config": BITSANDBYTES}, "linux", CPU, "vllm"),  # nobody can
        ({"model_type": "mllama", "architectures": ["MllamaForConditionalGeneration"], "vision_config": {}},
         "linux", CPU, "mlx-vlm"),
        ({**LLAMA, "quantization_config": tensors(INT8, INT8, "int-quantized")}, "darwin", Machine("metal"),
         "mlx"),  # whether vLLM can there is not known
    ],
)  # fmt: skip
def test_auto_chooses_who_can(config: Any, platform: str, machine: Machine, chosen: str) -> None:
    facts = loading.backend_evidence(snapshot(config), platform, machine, registries.load_capabilities)
    first = next((e for e in facts if e.rule == "files"), facts[-1])
    assert first.value == chosen, facts


def test_another_engine_that_could_is_named() -> None:
    facts = loading.backend_evidence(
        snapshot({**LLAMA, "quantization_config": NVFP4}), "linux", CPU, registries.load_capabilities
    )
    assert any(e.reason.kind is BackendReason.OTHER_COULD for e in facts)


@pytest.mark.parametrize(
    ("file", "block", "method", "scheme"),
    [
        ("quantize_config.json", {"bits": 4, "group_size": 128, "desc_act": True}, "gptq", "w4a16-actorder"),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 64, "zero_point": True}, "awq", "w4a16"),
        ("quantization_config.json", {"quant_method": "auto-round", "bits": 2}, "auto-round", "w2a16"),
        ("quantize_config.json", {"group_size": 128}, None, None),
    ],
)
def test_a_quantisation_in_a_file_of_its_own(
    file: str, block: dict[str, Any], method: str | None, scheme: str | None
) -> None:
    given = replace(snapshot(LLAMA), texts={"config.json": json.dumps(LLAMA), file: json.dumps(block)})
    found = quantisation.read(given)
    assert (found and found.method, found and found.scheme) == (method, scheme)
    if found is None:
        return
    assert found.beside
    assert loading.loads(found, given, registries.load_capabilities("mlx"), CPU).can is False
    config = {**LLAMA, "quantization_config": {"quant_method": "fp8"}}
    held = quantisation.read(replace(given, texts={**given.texts, "config.json": json.dumps(config)}))
    assert held is not None
    assert not held.beside


@pytest.mark.parametrize(
    ("config", "engine", "warned"),
    [
        ({"model_type": "llama"}, "vllm", True), (LLAMA, "vllm", False), ({"hidden_size": 8}, "vllm", False),
        ({"model_type": "llama"}, "mlx", False),
    ],
)  # fmt: skip
def test_a_config_without_a_class_is_served_without_its_head(
    config: dict[str, Any], engine: str, warned: bool
) -> None:
    facts = loading.unnamed_class(snapshot(config), registries.load_capabilities(engine))
    assert [render(fact.reason).startswith("warning: config.json names no arch") for fact in facts] == (
        [True] * warned
    )


def test_a_tokenizer_s_class_that_transformers_lacks() -> None:
    def can(name: str, version: str, **more: Any) -> bool | None:
        settings = json.dumps({"tokenizer_class": name, **more})
        given = replace(
            snapshot(LLAMA), texts={"config.json": json.dumps(LLAMA), "tokenizer_config.json": settings}
        )
        return loading.serves(given, registries.load_capabilities("vllm", version)).can

    assert can("TokenizersBackend", "0.14.1") is False
    assert can("TokenizersBackend", "0.14.1", auto_map={"AutoTokenizer": ["a.B", None]}) is True
    assert can("TokenizersBackend", "0.32.0") is True
    known = ("Qwen2Tokenizer", "Qwen2TokenizerFast", "PreTrainedTokenizerFast", "PreTrainedTokenizer")
    assert all(can(name, "0.14.1") for name in known)


@pytest.mark.parametrize(
    ("tower", "can"), [("qwen3_5_vision", True), ("x_vision_tower", False), (None, True)]
)
def test_a_vision_tower_that_mlx_vlm_refuses(tower: str | None, can: bool) -> None:
    vision = {"depth": 2} | ({} if tower is None else {"model_type": tower})
    given = snapshot({"model_type": "qwen3_5", "vision_config": vision})
    assert loading.serves(given, registries.load_capabilities("mlx-vlm")).can is can
