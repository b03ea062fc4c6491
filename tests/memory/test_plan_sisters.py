"""Listed quantised repositories beside a plan: those that hold the request on fewer cards."""

from __future__ import annotations

from typing import Any

import pytest

from importer.memory.choose import Choice
from importer.memory.plans import PlanReason
from importer.sentences import render
from tests.memory.test_fit_choose import QWEN_8B, QWEN_8B_BYTES
from tests.memory.test_fit_splits import LLAMA_70B
from tests.memory.test_plans import planned

LLAMA_BYTES = 141_107_412_992
FP8 = {"BF16": 2_102_398_976, "F8_E4M3": 68_451_041_280}


def row(repo: str, method: str, bits: int | None = None, **parameters: int) -> dict[str, Any]:
    return {"repo": repo, "method": method, "bits": bits, "downloads": 1, "parameters": parameters}


def with_listed(*rows: dict[str, Any], device: str = "4xa100-80g", **more: Any) -> Choice:
    user = {"listed_sisters": list(rows), **more.pop("user", {})}
    return planned(LLAMA_70B, device, LLAMA_BYTES, user=user, **more)


def worth(choice: Choice) -> list[str]:
    return [render(reason) for reason in choice.advice]


def test_a_repository_that_fits_on_fewer_cards() -> None:
    rows = (row("a/L-AWQ", "awq", 4, I32=9), row("a/L-FP8", "fp8", 8, **FP8))
    choice = with_listed(*rows, context=32768)
    assert choice.verdict == "fits"
    one, two = worth(choice)
    assert one.startswith("on a100-80g,")
    assert one.endswith("a/L-AWQ (awq, 4 bits)")
    assert two.startswith("on 2xa100-80g,")
    assert choice.to_json()["advice"] == [one, two]


def test_the_request_counts() -> None:
    rows = (row("a/L-AWQ", "awq", 4), row("a/L-FP8", "fp8", 8, **FP8))
    many = with_listed(*rows, concurrency=16, context=32768, device="8xa100-80g")
    assert [text.split(",")[0] for text in worth(many)] == ["on 4xa100-80g", "on 4xa100-80g"]


def test_one_that_needs_as_many_cards_is_not_worth_a_line() -> None:
    plain = planned(QWEN_8B, "8xh100", QWEN_8B_BYTES, user={"listed_sisters": [row("a/Q-FP8", "fp8", 8)]})
    assert plain.advice == ()
    assert with_listed(row("a/L-BF16", "fp8", 8, BF16=70_553_706_496)).advice == ()


@pytest.mark.slow
def test_where_nothing_fits_they_are_named() -> None:
    choice = with_listed(row("a/L-NVFP4", "compressed-tensors", None, U8=9), device="rtx4090")
    assert choice.verdict == "too-large"
    (why,) = choice.advice
    assert why.kind is PlanReason.LISTED
    assert "a/L-NVFP4 (compressed-tensors)" in render(why)
    held = with_listed(row("a/L-AWQ", "awq", 4), device="h100", context=16384)
    assert worth(held) == ["on h100-80g, by the Hub's list and not checked: a/L-AWQ (awq, 4 bits)"]


@pytest.mark.parametrize("parameters", [{"I32": 1}, {"BF16": 1}, {"odd": 5}, {}, {"BF16": -1}])
def test_odd_counts_make_no_claim_of_a_method_without_bits(parameters: dict[str, int]) -> None:
    choice = with_listed(row("a/L-Odd", "compressed-tensors", None, **parameters))
    assert choice.advice == ()


def test_a_layout_of_the_user_has_no_advice_and_no_list_neither() -> None:
    assert with_listed(row("a/L-AWQ", "awq", 4), user={"tensor_parallel_size": 4}).advice == ()
    assert planned(LLAMA_70B, "4xa100-80g", LLAMA_BYTES).advice == ()
