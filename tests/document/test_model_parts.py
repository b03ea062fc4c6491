"""Sequences divided between cards (``decode_context_parallel_size``) against the heads of a model."""

from __future__ import annotations

from typing import Any

import pytest

from importer.document.model_facts import ModelFacts
from tests.document.test_model_conflicts import facts, found

NAME = "engine_args.decode_context_parallel_size"
EIGHT = {"num_key_value_heads": 8}  # beside 32 heads of queries


def said(parts: int, tensor: int, **more: Any) -> dict[str, str]:
    return found(facts(**(EIGHT | more)), {NAME: parts, "tensor_parallel_size": tensor})


@pytest.mark.parametrize(("parts", "tensor"), [(8, 8), (2, 8), (4, 16), (3, 32)])
def test_more_than_the_copies_of_a_head_is_refused(parts: int, tensor: int) -> None:
    (words,) = said(parts, tensor).values()
    allowed = "1" if tensor == 8 else "1 or 2" if tensor == 16 else "1, 2 or 4"
    assert words == (
        f"vLLM divides a sequence between copies of a head of keys: 8 heads on {tensor} cards allow {allowed}"
    )


@pytest.mark.parametrize(("parts", "tensor"), [(1, 8), (2, 16), (4, 32)])
def test_the_copies_of_a_head_are_accepted(parts: int, tensor: int) -> None:
    assert said(parts, tensor) == {}


def test_a_latent_cache_and_an_unknown_model_have_no_such_limit() -> None:
    latent = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
    assert said(8, 8, model_type="deepseek_v3", **latent) == {}
    assert found(ModelFacts(), {NAME: 8, "tensor_parallel_size": 8}) == {}


def test_the_tensor_size_of_the_document_counts() -> None:
    assert found(facts(**EIGHT), {NAME: 2}, tensor_parallel_size=16) == {}
    assert found(facts(**EIGHT), {NAME: 2}) != {}
