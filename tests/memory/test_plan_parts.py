"""Decode context parallelism: where vLLM divides the tokens of a sequence, and when a plan does."""

from __future__ import annotations

from typing import Any

import pytest

from importer.memory import pages
from importer.memory.choose import Choice
from importer.memory.estimate import estimate
from importer.memory.estimate_types import Amount, Load, SizeReason, Unknown
from importer.memory.parallelism import PARTED, most
from importer.memory.plans import PlanReason, Split
from importer.memory.shape import Shape, describe
from importer.memory.weights import Weights
from importer.reasons import Reason
from tests.memory.test_fit_choose import DEEPSEEK
from tests.memory.test_fit_splits import LLAMA_70B
from tests.memory.test_plans import planned, settings
from tests.tiers import one_of_each

NAME = PARTED.rpartition(".")[2]
# Kimi K2 0905: a trillion parameters in 8 bits.
KIMI = {
    **DEEPSEEK, "model_type": "kimi_k2", "num_attention_heads": 64, "n_routed_experts": 384,
    "vocab_size": 163840, "first_k_dense_replace": 1, "max_position_embeddings": 262144,
}  # fmt: skip
KIMI_BYTES = 1_029_173_000_000
FEW = {**LLAMA_70B, "num_key_value_heads": 2}
INDEXED = {**DEEPSEEK, "index_topk": 2048, "index_head_dim": 128, "index_n_heads": 64,
           "model_type": "deepseek_v32"}  # fmt: skip


def of(config: dict[str, Any]) -> Shape:
    read = describe(config)
    assert not isinstance(read, Unknown)
    return read


@pytest.mark.parametrize(
    ("config", "tensor", "parts"),
    [
        (DEEPSEEK, 8, 8), (DEEPSEEK, 2, 2), (FEW, 8, 4),
        ({**FEW, "num_key_value_heads": 1, "num_attention_heads": 12}, 4, 4), (LLAMA_70B, 8, 1),
        (INDEXED, 8, 1), ({**FEW, "model_type": "mistral", "sliding_window": 4096}, 8, 1),
    ],
)  # fmt: skip
def test_the_cards_that_can_each_keep_a_part(config: dict[str, Any], tensor: int, parts: int) -> None:
    assert most(of(config), tensor) == parts


def test_vllms_own_figures() -> None:
    """DeepSeek V3.1 at 131,072 tokens in 16 bits on 8 cards: vLLM 0.33.0's bytes of a sequence, by parts."""
    shape = of(DEEPSEEK)
    vllm = {1: 9_210_691_584, 2: 4_605_345_792, 8: 1_151_336_448}
    for parts, size in vllm.items():
        load = Load(131_072, tensor_parallel=8, context_parallel=parts, block_size=16, memory=140 << 30)
        pool = pages.pool(shape, load)
        assert pool.sequence(pages.kept(load), pages.in_flight(load)) == size
        weights = Weights(Amount.exactly(1), None, "files", Reason(SizeReason.FILES, count=1))
        term = estimate(shape, weights, load, "vllm").term("kv cache")
        assert term is not None
        assert term.amount.likely == size + pool.block


def on_kimi(device: str = "8xh200", **more: Any) -> Choice:
    return planned(KIMI, device, more.pop("size", KIMI_BYTES), arguments=(NAME,), **more)


@pytest.mark.slow
def test_the_longest_sequences_are_divided_where_nothing_else_holds_them() -> None:
    choice = on_kimi(goal="context", concurrency=16)
    best = choice.plans[0]
    assert choice.verdict == "fits"
    assert (best.split, best.context, best.kv_dtype, best.meets) == (Split(8, parts=8), 262_144, "auto", True)
    assert settings(choice)[NAME] == 8
    kinds = {reason.kind for reason in (*best.why, *best.costs)}
    assert {PlanReason.TOKENS_PARTED, PlanReason.GATHERED} <= kinds
    assert PlanReason.LATENT_COPIED not in kinds
    assert best.to_json()["decode_context_parallel"] == 8
    assert choice.fit is not None
    assert choice.fit.load.context_parallel == 8
    whole = next(plan for plan in choice.plans if plan.split.parts == 1)
    assert whole.kv_dtype == "fp8", "whole, it needs keys in 8 bits"
    assert whole.context < best.context


@pytest.mark.slow
def test_no_sequence_is_divided_where_it_fits_whole() -> None:
    roomy = planned(DEEPSEEK, "8xh200", 688_586_727_753, arguments=(NAME,), goal="context")
    assert {plan.split.parts for plan in roomy.plans} == {1}
    in_8_bits = on_kimi(context=100_000)
    assert [plan.split.parts for plan in in_8_bits.plans] == [1, 1, 1]
    assert in_8_bits.plans[0].kv_dtype == "fp8", "without the goal, 8 bits that hold the request are enough"


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    one_of_each(
        [
            {"user": {"engine_args.attention_backend": "FLASHMLA"}},
            {"user": {"engine_args.speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}},
            {"device": "8xmi300x", "size": 1_400_000_000_000},
        ],
    ),
)
def test_what_vllm_does_not_combine_with_it(more: dict[str, Any]) -> None:
    choice = on_kimi(goal="context", concurrency=16, **more)
    assert {plan.split.parts for plan in choice.plans} <= {1}


@pytest.mark.slow
def test_an_engine_without_the_argument_gets_none() -> None:
    choice = planned(KIMI, "8xh200", KIMI_BYTES, goal="context", concurrency=16)
    assert NAME not in settings(choice)


@pytest.mark.slow
def test_the_users_number_counts() -> None:
    fixed = on_kimi(user={PARTED: 4, "tensor_parallel_size": 8})
    assert fixed.fit is not None
    assert fixed.fit.load.context_parallel == 4
    odd = on_kimi(user={PARTED: 3, "tensor_parallel_size": 8})
    assert odd.fit is not None
    assert odd.fit.load.context_parallel == 1
