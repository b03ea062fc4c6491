"""Decode context parallelism: where vLLM divides the tokens of a sequence, as the user sets it."""

from __future__ import annotations

from typing import Any

import pytest

from importer.memory import pages
from importer.memory.engine_keys import PARTED
from importer.memory.estimate import estimate
from importer.memory.estimate_types import Amount, Load, SizeReason, Unknown
from importer.memory.parallelism import most
from importer.memory.shape import Shape, describe
from importer.memory.weights import Weights
from importer.reasons import Reason
from tests.memory.test_fit_choose import DEEPSEEK
from tests.memory.test_fit_splits import LLAMA_70B
from tests.memory.test_plans import planned

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


@pytest.mark.slow
def test_the_users_number_counts() -> None:
    for number, parts in ((4, 4), (3, 1)):
        user = {PARTED: number, "tensor_parallel_size": 8}
        found = planned(DEEPSEEK, "8xh200", 688_586_727_753, user=user).fit
        assert found is not None
        assert found.load.context_parallel == parts
