"""How a model is spread over cards: heads, states and blocks come out even, stages take the rest."""

from __future__ import annotations

from typing import Any

import pytest

from importer.memory.parallelism import Split, splits
from importer.memory.shape import Shape, describe

LLAMA_70B = {
    "model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN_05B = {
    "model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "intermediate_size": 4864,
    "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
}  # fmt: skip
MOE_FP8 = {
    "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "intermediate_size": 6144,
    "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
GPTQ = {
    "model_type": "qwen2", "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 29568,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064,
    "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128},
}  # fmt: skip
GROUPED = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"weights": {"group_size": 128}}},
}
SINGLE_KV = {**QWEN_05B, "num_attention_heads": 8, "num_key_value_heads": 1}


def ways(config: dict[str, Any], cards: int) -> list[tuple[int, int]]:
    shape = describe(config)
    assert isinstance(shape, Shape)
    return [(s.tensor, s.pipeline) for s in splits(config, shape, cards)]


@pytest.mark.parametrize(
    ("config", "cards", "expected"),
    [
        (LLAMA_70B, 1, [(1, 1)]),
        (LLAMA_70B, 8, [(1, 1), (2, 1), (4, 1), (8, 1)]),
        (LLAMA_70B, 6, [(1, 1), (2, 1), (4, 1), (2, 3)]),
        (LLAMA_70B, 3, [(1, 1), (2, 1), (1, 3)]),
        (QWEN_05B, 8, [(1, 1), (2, 1), (2, 2), (2, 4)]),
        (SINGLE_KV, 8, [(1, 1), (2, 1), (4, 1), (8, 1)]),
        (MOE_FP8, 8, [(1, 1), (2, 1), (2, 2), (2, 4)]),
        ({**MOE_FP8, "quantization_config": {}}, 8, [(1, 1), (2, 1), (4, 1), (8, 1)]),
        (GPTQ, 8, [(1, 1), (1, 2), (1, 4), (1, 8)]),
        ({**LLAMA_70B, "quantization_config": GROUPED}, 8, [(1, 1), (2, 1), (4, 1), (8, 1)]),
        ({**QWEN_05B, "num_hidden_layers": 3}, 8, [(1, 1), (2, 1), (2, 2)]),
    ],
)
def test_ways(config: dict[str, Any], cards: int, expected: list[tuple[int, int]]) -> None:
    assert ways(config, cards) == expected


def test_states_come_out_even_too() -> None:
    """Linear attention with 32 value heads and 16 key heads, full attention with two heads of keys."""
    config = {
        "model_type": "qwen3_next", "num_hidden_layers": 4, "hidden_size": 2048, "intermediate_size": 5120,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 1000,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "linear_num_value_heads": 12, "linear_num_key_heads": 12, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
    }  # fmt: skip
    assert ways(config, 8) == [(1, 1), (2, 1), (4, 1), (4, 2)]


@pytest.mark.parametrize("block", [3, [], "x", {"group_size": "128"}, {"weight_block_size": [0, True]}, None])
def test_a_strange_quantisation_changes_nothing(block: object) -> None:
    assert ways({**LLAMA_70B, "quantization_config": block}, 8) == ways(LLAMA_70B, 8)


def test_the_number_of_cards() -> None:
    assert Split(4, 2).cards == 8
