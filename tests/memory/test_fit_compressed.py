"""Sparse and compressed caches: figures that vLLM 0.33.0's own functions gave for published configs.

``tests/vllm_cards_script.py`` builds vLLM's model classes for a pretended card; the nightly test of
``test_fit_engine.py`` compares them again.
"""

from __future__ import annotations

from typing import Any

import pytest

from importer.memory import pages
from importer.memory.choose import parts
from importer.memory.estimate import estimate
from importer.memory.estimate_types import Amount, Load, SizeReason, Unknown
from importer.memory.shape import Shape, describe
from importer.memory.weights import Weights
from importer.reasons import Reason
from importer.sentences import render

# DeepSeek V4 Flash and Pro: the keys that its caches depend on.
V4: dict[str, Any] = {
    "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "head_dim": 512,
    "qk_rope_head_dim": 64, "index_head_dim": 128, "index_topk": 512, "index_n_heads": 64,
    "num_key_value_heads": 1, "sliding_window": 128, "vocab_size": 129280, "o_lora_rank": 1024,
    "max_position_embeddings": 1048576, "torch_dtype": "bfloat16", "n_shared_experts": 1,
    "num_experts_per_tok": 6, "num_nextn_predict_layers": 1,
}  # fmt: skip
FLASH = V4 | {
    "num_hidden_layers": 43, "hidden_size": 4096, "num_attention_heads": 64, "moe_intermediate_size": 2048,
    "n_routed_experts": 256, "q_lora_rank": 1024, "o_groups": 8,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
}  # fmt: skip
PRO = V4 | {
    "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128, "moe_intermediate_size": 3072,
    "n_routed_experts": 384, "q_lora_rank": 1536, "o_groups": 16,
    "compress_ratios": [128, 128, *[4, 128] * 29, 4, 0],
}  # fmt: skip
# GLM 5.2's and DeepSeek V3.2's attention: some layers of the first share an earlier layer's indexer.
SPARSE: dict[str, Any] = {
    "hidden_size": 6144, "num_attention_heads": 64, "num_key_value_heads": 64, "kv_lora_rank": 512,
    "q_lora_rank": 2048, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256,
    "index_head_dim": 128, "index_topk": 2048, "index_n_heads": 32, "vocab_size": 154880,
    "intermediate_size": 12288, "torch_dtype": "bfloat16", "max_position_embeddings": 1048576,
}  # fmt: skip
SHARING = SPARSE | {
    "model_type": "glm_moe_dsa", "num_hidden_layers": 78,
    "indexer_types": ["full" if i < 3 or not (i - 2) % 4 else "shared" for i in range(78)],
}  # fmt: skip
EACH = SPARSE | {"model_type": "deepseek_v32", "num_hidden_layers": 61, "max_position_embeddings": 163840}
H200 = {"device": "cuda", "memory": 140 << 30, "capability": 90}
B200 = {"device": "cuda", "memory": 178 << 30, "capability": 100}


def shape_of(config: dict[str, Any]) -> Shape:
    """Return the shape of a config."""
    shape = describe(config)
    assert not isinstance(shape, Unknown)
    return shape


def sequence(config: dict[str, Any], **load: Any) -> int:
    """Return the bytes of one sequence with the whole context."""
    held = Load(config["max_position_embeddings"], **load)
    return pages.pool(shape_of(config), held).sequence(held.context, pages.in_flight(held))


@pytest.mark.parametrize(
    ("config", "load", "reported"),
    [
        pytest.param(FLASH, H200, 10_802_142_720, id="V4 Flash, H200"),
        pytest.param(FLASH, H200 | {"tensor_parallel": 8}, 10_802_142_720, id="V4 Flash, 8 H200"),
        pytest.param(FLASH, B200, 17_473_052_160, id="V4 Flash, B200: twice the tokens of a step"),
        pytest.param(PRO, H200, 1435968 * 10778, id="V4 Pro, H200: 14.4 GiB"),
        pytest.param(EACH, H200, 12_832_604_160, id="V3.2, H200"),
        pytest.param(EACH, B200 | {"kv_dtype": "fp8"}, 7_075_921_920, id="V3.2 in 8 bits, B200"),
        pytest.param(SHARING, H200, 97_127_497_728, id="GLM 5.2, H200"),
        pytest.param(SHARING, B200, 50_017_075_200, id="GLM 5.2, B200: in 8 bits by default"),
    ],
)
def test_a_sequence_takes_what_vllm_counts(
    config: dict[str, Any], load: dict[str, Any], reported: int
) -> None:
    assert sequence(config, **load) == reported


def cache_of(config: dict[str, Any], **load: Any) -> Amount:
    """Return the term of the KV cache in an estimate."""
    weights = Weights(Amount.exactly(1), None, "config", Reason(SizeReason.CONFIG))
    term = estimate(shape_of(config), weights, Load(32768, **load), "vllm").term("kv cache")
    assert term is not None
    return term.amount


def test_a_counted_cache_has_no_range_on_a_known_card() -> None:
    for config in (FLASH, EACH):
        amount = cache_of(config, **H200)
        assert amount.low == amount.likely == amount.high


def test_a_card_without_a_capability_widens_the_range_to_every_form() -> None:
    open_one = cache_of(EACH, device="cuda", memory=140 << 30, kv_dtype="fp8")
    plain, packed = (cache_of(EACH, **{**H200, "capability": c}, kv_dtype="fp8").likely for c in (100, 90))
    assert open_one.low == pytest.approx(plain, rel=0.001)
    assert open_one.high == pytest.approx(packed, rel=0.001)


# Qwen3.5 35B-A3B and Nemotron-H 56B: the keys that their caches depend on.
DELTA: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe_text",
    "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16, "num_key_value_heads": 2,
    "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
    "torch_dtype": "bfloat16", "vocab_size": 248320, "mamba_ssm_dtype": "float32",
    "max_position_embeddings": 262144,
}  # fmt: skip


@pytest.mark.parametrize(
    ("capability", "tokens", "states"), [(90, 1088, 9), (103, 1088, 9), (80, 1056, 6), (None, 1088, 9)]
)
def test_the_blocks_of_delta_nets_end_where_the_prefill_gives_a_state(
    capability: int | None, tokens: int, states: int
) -> None:
    load = Load(262144, device="cuda", memory=80 << 30, capability=capability)
    pool = pages.pool(shape_of(DELTA), load)
    attended = -(-262144 // tokens)
    assert pool.block == 10 * tokens * 2048
    assert pool.blocks(262144, pages.in_flight(load)) == attended + states


def test_keys_and_states_together_are_what_vllm_demands_at_its_start() -> None:
    weights = Weights(Amount.exactly(1), None, "config", Reason(SizeReason.CONFIG))
    load = Load(262144, device="cuda", memory=80 << 30, capability=90)
    terms = [estimate(shape_of(DELTA), weights, load, "vllm").term(p) for p in ("kv cache", "states")]
    said = render(parts(estimate(shape_of(DELTA), weights, load, "vllm"))[2])
    assert said == "states 191 MiB"
    block = pages.pool(shape_of(DELTA), load).block
    assert sum(t.amount.likely for t in terms if t) - block == 5570560000  # and one block that stays empty


@pytest.mark.parametrize(("text", "number"), [("9.0", 90), ("12.1", 121), (None, None), ("gfx942", None)])
def test_a_capability_is_read_as_a_number(text: str | None, number: int | None) -> None:
    assert pages.compute_number(text) == number
