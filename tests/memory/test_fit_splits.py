"""How a model is spread over cards: heads, states and blocks come out even, stages take the rest."""

from __future__ import annotations

from typing import Any

import pytest

from importer.memory.devices import named
from importer.memory.parallelism import layouts
from importer.memory.plans import Split
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


def ways(config: dict[str, Any], cards: int, name: str = "h100") -> list[tuple[int, int]]:
    """Tensor parallelism and stages of every layout with one copy."""
    return [(s.tensor, s.pipeline) for s in made(config, cards, name) if s.copies == 1 and not s.experts]


def made(config: dict[str, Any], cards: int, name: str = "h100") -> list[Split]:
    shape = describe(config)
    assert isinstance(shape, Shape)
    return layouts(config, shape, named(f"{cards}x{name}"), "vllm")


@pytest.mark.parametrize(
    ("config", "cards", "expected"),
    [
        (LLAMA_70B, 1, [(1, 1)]), (LLAMA_70B, 8, [(1, 8), (2, 4), (4, 2), (8, 1)]),
        (LLAMA_70B, 6, [(1, 6), (2, 3)]), (QWEN_05B, 8, [(1, 8), (2, 4)]),
        (SINGLE_KV, 8, [(1, 8), (2, 4), (4, 2), (8, 1)]), (MOE_FP8, 8, [(1, 8), (2, 4)]),
        ({**MOE_FP8, "quantization_config": {}}, 8, [(1, 8), (2, 4), (4, 2), (8, 1)]), (GPTQ, 8, [(1, 8)]),
        ({**LLAMA_70B, "quantization_config": GROUPED}, 8, [(1, 8), (2, 4), (4, 2), (8, 1)]),
        ({**QWEN_05B, "num_hidden_layers": 3}, 8, []),
    ],
)  # fmt: skip
def test_ways(config: dict[str, Any], cards: int, expected: list[tuple[int, int]]) -> None:
    assert ways(config, cards) == expected


@pytest.mark.parametrize("cards", [1, 3, 6, 8, 16, 72])
@pytest.mark.parametrize("config", [LLAMA_70B, MOE_FP8, GPTQ])
@pytest.mark.parametrize("name", ["h100", "gb300", "rtx4090"])
def test_every_layout_has_all_cards_and_tensors_within_a_machine(
    config: dict[str, Any], cards: int, name: str
) -> None:
    found = made(config, cards, name)
    assert found
    for split in found:
        assert split.devices == cards
        assert split.tensor <= named(name).node
        assert split.tensor * split.data <= named(name).node or split.experts
        assert split.data == 1 or split.experts == ("num_experts" in config)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("config", "name", "spread"),
    [(MOE_FP8, "h100", True), (MOE_FP8, "l4", False), (LLAMA_70B, "h100", False),
     ({**MOE_FP8, "num_experts": 8}, "h100", False)],
)  # fmt: skip
def test_experts_over_machines_with_links(config: dict[str, Any], name: str, spread: bool) -> None:
    """Each card has an expert at least; without links, and for a dense model, machines stay apart."""
    assert any(s.data == 16 and s.experts for s in made(config, 16, name)) == spread


def test_whole_experts_where_their_blocks_do_not_divide() -> None:
    """768 / 8 is no multiple of 128: shared by eight cards only as whole experts."""
    by_tensor = {s.tensor: s for s in made(MOE_FP8, 8) if s.copies == 1 and s.pipeline == 1}
    assert by_tensor == {8: Split(8, experts=True)} | {k: v for k, v in by_tensor.items() if k != 8}
    dense = {**MOE_FP8, "first_k_dense_replace": 1, "intermediate_size": 6144 + 128}
    assert not any(s.tensor == 8 for s in made(dense, 8)), "its dense layer has blocks, too"


def test_states_come_out_even_too() -> None:
    """Linear attention with 32 value heads and 16 key heads, full attention with two heads of keys."""
    config = {
        "model_type": "qwen3_next", "num_hidden_layers": 4, "hidden_size": 2048, "intermediate_size": 5120,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 1000,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "linear_num_value_heads": 12, "linear_num_key_heads": 12, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
    }  # fmt: skip
    assert ways(config, 8) == [(2, 4), (4, 2)]


@pytest.mark.parametrize("block", [3, [], "x", {"group_size": "128"}, {"weight_block_size": [0, True]}, None])
def test_a_strange_quantisation_changes_nothing(block: object) -> None:
    assert ways({**LLAMA_70B, "quantization_config": block}, 8) == ways(LLAMA_70B, 8)
