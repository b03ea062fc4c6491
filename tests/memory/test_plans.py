"""Plans for a goal: layouts, what they hold, what they cost, and documents without a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from importer.errors import Setting, UsageError
from importer.memory import pages, shape, weights
from importer.memory.bounds import step
from importer.memory.case import LoadCase
from importer.memory.choose import Choice, choose
from importer.memory.devices import Device, named
from importer.memory.engine_keys import SLOTS, FitRequest
from importer.memory.planner import Plan
from importer.memory.plans import Aim, Goal, Split, aim
from importer.memory.shape import Shape
from importer.memory.weights import Weights
from importer.sentences import render
from tests.memory.test_fit_choose import DEEPSEEK, QWEN_8B, QWEN_8B_BYTES, snapshot
from tests.memory.test_fit_compressed import DELTA
from tests.memory.test_fit_splits import LLAMA_70B, MOE_FP8

DEEPSEEK_BYTES = 688_586_727_753
SMALL = {**QWEN_8B, "num_hidden_layers": 28, "hidden_size": 1024, "intermediate_size": 3072,
         "num_attention_heads": 16, "tie_word_embeddings": True}  # fmt: skip


def planned(
    config: dict[str, Any], device: str | None, size: int | None, *, user: Any = None, **aim: Any
) -> Choice:
    """The choice for an aim, with the user's values."""
    repository = snapshot(config, size)
    read = shape.read(repository)
    assert isinstance(read, Shape)
    values = {"max_model_len": read.context, **(user or {})}
    request = FitRequest(values, user or {})
    on = None if device is None else named(device)
    sizes = weights.read(repository, read)
    return choose(repository, read, sizes, on, "vllm", request, Aim(**aim))


def settings(choice: Choice) -> dict[str, Any]:
    return {e.key.removeprefix("engine_args."): e.value for e in choice.evidence if e.rule.value == "fit"}


@pytest.mark.parametrize(
    ("goal", "expected"), [(None, Split(8)), ("throughput", Split(1, 1, 8, experts=True))]
)
def test_latent_attention_on_eight_cards(goal: Goal | None, expected: Split) -> None:
    """Tensor parallelism keeps the whole latent cache on every card; copies share the requests."""
    best, *others = planned(DEEPSEEK, "8xh200", DEEPSEEK_BYTES, goal=goal).plans
    assert best.split == expected
    assert len(others) == 2
    assert len({best.split, *(p.split for p in others)}) == 3
    assert all(p.split.devices == 8 for p in (best, *others))


def test_a_model_that_one_card_holds_is_copied() -> None:
    choice = planned(SMALL, "8xh100", 1_200_000_000)
    assert choice.plans[0].split == Split(data=8)
    assert settings(choice)["data_parallel_size"] == 8
    assert planned(SMALL, "8xh100", 1_200_000_000, goal="throughput").plans[0].split == Split(data=8)
    assert planned(SMALL, "h100", 1_200_000_000).plans[0].split == Split()


@pytest.mark.slow
def test_two_machines_are_stages_or_servers() -> None:
    large = planned(DEEPSEEK, "16xh100", DEEPSEEK_BYTES)
    assert large.plans[0].split == Split(8, 2)
    assert {"tensor_parallel_size": 8, "pipeline_parallel_size": 2}.items() <= settings(large).items()
    assert any("started on each of 2 machines" in why for why in large.to_json()["plans"][0]["why"])
    two = planned(LLAMA_70B, "16xh100", 141_107_412_992)
    assert two.plans[0].split == Split(8, replicas=2)
    assert any("2 servers of 8 cards" in why for why in two.to_json()["plans"][0]["why"])


@pytest.mark.slow
def test_experts_over_machines_leave_room_for_keys_in_16_bits() -> None:
    """Stages precede them without a goal; a copy of attention in each needs its number in a machine."""
    busy = planned(DEEPSEEK, "16xh100", DEEPSEEK_BYTES, goal="throughput", concurrency=64)
    best = busy.plans[0]
    assert (best.split.experts, best.split.pipeline, best.split.tensor * best.split.data) == (True, 1, 16)
    assert (best.is_fp8, best.meets) == (False, True)
    assert settings(busy)["data_parallel_size_local"] * 2 == best.split.data
    assert any("data_parallel_start_rank" in why for why in busy.to_json()["plans"][0]["why"])
    one = planned(DEEPSEEK, "8xh200", DEEPSEEK_BYTES, goal="throughput")
    assert "data_parallel_size_local" not in settings(one)


@pytest.mark.slow
def test_concurrency_is_counted() -> None:
    """Each requested sequence is held in memory; the number of each copy is written."""
    few = planned(LLAMA_70B, "8xh100", 141_107_412_992, concurrency=16, context=32768)
    assert few.verdict == "fits"
    assert few.plans[0].meets
    assert few.plans[0].sequences >= 16
    assert (settings(few)["max_num_seqs"], settings(few)["max_model_len"]) == (16, 32768)
    copies = planned(QWEN_8B, "8xh100", QWEN_8B_BYTES, concurrency=100)
    assert settings(copies)["max_num_seqs"] == 13, "100 sequences in 8 copies"
    many = planned(LLAMA_70B, "8xh100", 141_107_412_992, concurrency=4000, context=131072)
    assert not many.plans[0].meets
    warned = [render(e.reason) for e in many.evidence if e.key.endswith("max_num_seqs")]
    assert warned[0].startswith("warning: it holds ")
    assert " of the 4,000 requested sequences of 131,072 tokens" in warned[0]


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_held_sequences_fit_and_one_more_does_not(count: int) -> None:
    repository = snapshot(QWEN_8B, QWEN_8B_BYTES)
    read = shape.read(repository)
    sizes = weights.read(repository, read)
    assert isinstance(read, Shape)
    assert isinstance(sizes, Weights)
    case = LoadCase(
        QWEN_8B,
        read,
        sizes,
        named("h100"),
        "vllm",
        FitRequest({}),
        1000 * count,
        aim=Aim(context=1000 * count),
    )
    plan = Plan(case, Split(), 0.92)
    fits = [
        case.fit(1000 * count, Split(), plan.sequences + more).total.likely + plan.spare <= plan.budget
        for more in (0, 1)
    ]
    assert fits == [True, False]


def test_a_requested_context_is_written_and_at_most_the_models() -> None:
    shorter = planned(QWEN_8B, "rtx4090", QWEN_8B_BYTES, context=8000)
    assert settings(shorter)["max_model_len"] == 8000
    beyond = planned(QWEN_8B, "h200", QWEN_8B_BYTES, context=100_000)
    (warned,) = (e for e in beyond.evidence if "100,000 tokens were requested" in render(e.reason))
    assert warned.value == 40960
    assert render(warned.reason).startswith("warning: ")
    kept = planned(QWEN_8B, "h200", QWEN_8B_BYTES, context=8000, user={"max_model_len": 4096})
    assert "max_model_len" not in settings(kept), "the user's own value precedes"


@pytest.mark.slow
def test_steps_of_prompts_suit_the_goal() -> None:
    busy = planned(LLAMA_70B, "8xh100", 141_107_412_992, goal="throughput")
    assert settings(busy)["max_num_batched_tokens"] == 16384
    quick = planned(LLAMA_70B, "8xh100", 141_107_412_992, goal="latency", concurrency=8)
    assert settings(quick)["max_num_batched_tokens"] == 2048
    for choice in (planned(LLAMA_70B, "8xh100", 141_107_412_992), planned(QWEN_8B, "l4", 5 * 10**9)):
        assert "max_num_batched_tokens" not in settings(choice)
    own = planned(LLAMA_70B, "8xh100", 141_107_412_992, goal="throughput",
                  user={"engine_args.max_num_batched_tokens": 4096})  # fmt: skip
    assert "max_num_batched_tokens" not in settings(own)


@pytest.mark.slow
def test_experts_are_dealt_out_where_cards_have_links() -> None:
    config = {**MOE_FP8, "max_position_embeddings": 32768}
    linked = planned(config, "8xh100", 31_200_000_000).plans[0].split
    assert linked == Split(1, 1, 8, experts=True)
    apart = planned(config, "4xrtx-pro-6000", 31_200_000_000).plans[0].split
    assert apart == Split(replicas=4)


def test_a_card_that_another_build_serves_is_said_so() -> None:
    for device, build in (("8xmi300x", "rocm"), ("tpu-v6e", "vllm-tpu"), ("4xarc-pro-b60", "xpu")):
        choice = planned(SMALL, device, 1_200_000_000)
        (warned,) = (e for e in choice.evidence if e.key == "backend")
        assert warned.value == "vllm"
        assert build in render(warned.reason)
        assert choice.plans


def test_without_a_device_no_limit_is_written() -> None:
    choice = planned(DEEPSEEK, None, DEEPSEEK_BYTES)
    assert choice.verdict == "neutral"
    assert choice.device is None
    assert settings(choice) == {}
    assert {e.key for e in choice.evidence} <= {"dtype"}
    assert "weights 643.2 GiB" in choice.message
    assert choice.to_json()["estimate"]["total"]["likely"] > DEEPSEEK_BYTES
    asked = planned(DEEPSEEK, None, DEEPSEEK_BYTES, concurrency=32, context=65536)
    assert settings(asked) == {"max_num_seqs": 32, "max_model_len": 65536}


def test_bounds_are_of_the_bandwidth() -> None:
    """A token of one sequence reads all weights once; of experts those that it visits."""
    repository = snapshot(QWEN_8B, QWEN_8B_BYTES)
    read = shape.read(repository)
    sizes = weights.read(repository, read)
    assert isinstance(read, Shape)
    assert isinstance(sizes, Weights)

    def bound(device: Device, split: Split, count: int = 1) -> tuple[float, float]:
        case = LoadCase(QWEN_8B, read, sizes, device, "vllm", FitRequest({}), 4096)  # type: ignore[arg-type]
        made = step(case, split, count, 4096)
        assert made is not None
        return made.seconds, made.rate

    h100 = named("h100")
    seconds, rate = bound(h100, Split())
    assert QWEN_8B_BYTES / 3.35e12 < seconds < 1.1 * QWEN_8B_BYTES / 3.35e12
    assert rate == pytest.approx(1 / seconds)
    assert seconds / 8 < bound(h100, Split(8))[0] < seconds / 2
    assert bound(h100, Split(data=8), 8)[1] == pytest.approx(8 * rate)
    assert bound(h100, Split(pipeline=2))[0] > seconds
    unknown = replace(h100, bandwidth=None)
    case = LoadCase(QWEN_8B, read, sizes, unknown, "vllm", FitRequest({}), 4096)
    assert step(case, Split(), 1, 4096) is None


def decided(choice: Choice, key: str) -> tuple[Any, list[str]]:
    """The value of a key by rank, and the sentences with that value."""
    facts = sorted((e for e in choice.evidence if e.key == key), key=lambda e: e.rule.rank)
    return facts[0].value, [render(e.reason) for e in facts if e.value == facts[0].value]


@pytest.mark.slow
def test_where_nothing_fits_the_requested_context_is_written() -> None:
    """The warning stands at the person's value, not at the vendor's; so does the number of sequences."""
    choice = planned(LLAMA_70B, "2xrtx4090", 141_107_412_992, context=4096, concurrency=2)
    assert choice.verdict == "too-large"
    value, said = decided(choice, "max_model_len")
    assert value == 4096
    assert any(text.startswith("warning: it does not fit") for text in said)
    assert settings(choice)["max_num_seqs"] in (1, 2)
    for plan in choice.plans:
        assert plan.length == 4096


MINIMAX = {
    **MOE_FP8, "moe_intermediate_size": 1536, "num_key_value_heads": 8, "max_position_embeddings": 8192,
}  # fmt: skip


def test_a_layout_of_the_users_is_completed() -> None:
    """Cards beside the user's get copies; experts stay whole where their blocks do not divide."""

    def best(config: dict[str, Any], size: int, **user: Any) -> Split:
        choice = planned(config, "8xh100", size, user={k.replace("__", "."): v for k, v in user.items()})
        assert not [e for e in choice.evidence if e.key in user], "nothing to warn of"
        return choice.plans[0].split

    assert best(QWEN_8B, QWEN_8B_BYTES, tensor_parallel_size=2) == Split(2, data=4)
    assert best(QWEN_8B, QWEN_8B_BYTES, tensor_parallel_size=2, engine_args__data_parallel_size=1) == Split(
        2, replicas=4
    )
    assert best(MINIMAX, 230_000_000_000, tensor_parallel_size=8) == Split(8, experts=True)
    assert best(QWEN_8B, QWEN_8B_BYTES, engine_args__pipeline_parallel_size=2).pipeline == 2


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"tensor_parallel_size": 16}, "it takes 16 cards, and 8xh100-80g has 8"),
        ({"tensor_parallel_size": 8, "engine_args.enable_expert_parallel": False}, "blocks of scales do not"),
        ({"tensor_parallel_size": 1, "engine_args.data_parallel_size": 3}, "2 x h100-80g have no part"),
    ],
)  # fmt: skip
def test_a_layout_that_does_not_suit_is_warned_of(user: dict[str, Any], said: str) -> None:
    """The warning stands at the user's own value, which stays."""
    choice = planned(MINIMAX, "8xh100", 30_000_000_000, user=user)
    value, warned = decided(choice, "tensor_parallel_size")
    assert value == user["tensor_parallel_size"]
    assert any(text.startswith("warning: ") and said in text for text in warned)


@pytest.mark.parametrize("goal", [None, "throughput"])
def test_a_model_that_pools_is_copied(goal: Goal | None) -> None:
    """It has no steps of decoding to compare, and no sequences that stay."""
    pools = {"engine_args.runner": "pooling"}
    choice = planned(QWEN_8B, "8xh100", QWEN_8B_BYTES, user=pools, goal=goal, concurrency=64)
    best = choice.plans[0]
    assert best.split == Split(data=8)
    assert (best.step, best.busy) == (None, None)
    assert not {"max_num_seqs", "max_num_batched_tokens"} & settings(choice).keys()
    assert settings(planned(QWEN_8B, None, QWEN_8B_BYTES, user=pools, concurrency=64)) == {}


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        (("speed", None, None), Setting.GOAL),
        ((None, 0, None), Setting.CONCURRENCY),
        ((None, None, True), Setting.CONTEXT),
    ],
)
def test_what_is_asked_of_a_plan_is_checked(given: tuple[Any, Any, Any], setting: Setting) -> None:
    with pytest.raises(UsageError) as caught:
        aim(*given)
    assert caught.value.details["setting"] is setting
    assert aim("latency", 4, 8192) == Aim("latency", 4, 8192)


@pytest.mark.parametrize(
    ("device", "goal", "concurrency", "context"),
    [("h100", "latency", 3000, 512), ("rtx4090", None, 3000, 512), ("h100", None, 1_000_000, None)],
)
def test_more_sequences_than_a_step_has_tokens(
    device: str, goal: Goal | None, concurrency: int, context: int | None
) -> None:
    """vLLM ends at its start where ``max_num_seqs`` is above ``max_num_batched_tokens``."""
    choice = planned(QWEN_8B, device, QWEN_8B_BYTES, goal=goal, concurrency=concurrency, context=context)
    assert choice.fit is not None
    step_tokens = choice.fit.load.batched_tokens or pages.batched_default(choice.fit.load)
    assert settings(choice)["max_num_seqs"] <= step_tokens
    assert choice.verdict == "fits", "too many sequences are no model that is too large"
    best = choice.plans[0]
    assert 90 < best.sequences < concurrency
    assert not best.meets
    (why,) = (render(e.reason) for e in choice.evidence if e.key == SLOTS)
    assert why.startswith("warning: it holds")


def test_a_number_of_sequences_of_the_user_below_the_request_is_a_warning() -> None:
    choice = planned(QWEN_8B, "8xh100", QWEN_8B_BYTES, user={SLOTS: 4}, concurrency=64)
    assert (choice.plans[0].sequences, choice.plans[0].meets) == (32, False)
    (why,) = (render(e.reason) for e in choice.evidence if e.key == SLOTS)
    assert "32 of the 64 requested sequences" in why
    enough = planned(QWEN_8B, "8xh100", QWEN_8B_BYTES, user={SLOTS: 8}, concurrency=64)
    assert enough.plans[0].meets
    assert not [e for e in enough.evidence if e.key == SLOTS]


DELTA_BYTES = 60 * 2**30


@pytest.mark.parametrize("device", ["h100-80g", "a100-80g", "rtx-pro-6000"])
def test_sequences_are_no_more_than_the_blocks_of_states(device: str) -> None:
    """vLLM ends its start: "max_num_seqs (1024) exceeds available Mamba cache blocks (939)"."""
    choice = planned(DELTA, device, DELTA_BYTES)
    assert choice.plan
    assert choice.fit
    blocks = choice.plan.state_blocks()
    assert blocks is not None
    usual = pages.slots_default(choice.fit.load)
    written = settings(choice).get("max_num_seqs")
    assert (written or usual) <= blocks
    assert (written is None) == (usual <= blocks)
    assert choice.verdict == "fits"


@pytest.mark.parametrize(
    ("user", "version", "warned"),
    [
        ({}, None, True),
        ({}, "0.20.0", True),
        ({}, "0.19.1", False),  # it recorded smaller graphs
        ({"engine_args.enforce_eager": True}, None, False),
        ({"engine_args.compilation_config": {"cudagraph_mode": "PIECEWISE"}}, None, False),
        ({"engine_args.optimization_level": 1}, None, False),
        ({"engine_args.runner": "pooling"}, None, False),
        ({"engine_args.num_gpu_blocks_override": 100}, None, True),
        ({SLOTS: 64}, None, False),
    ],
)
def test_more_sequences_than_blocks_of_states_may_not_start(
    user: dict[str, Any], version: str | None, warned: bool
) -> None:
    user = {SLOTS: 1024, "max_model_len": 4096, **user}
    repository = snapshot(DELTA, DELTA_BYTES)
    read = shape.read(repository)
    assert isinstance(read, Shape)
    sizes = weights.read(repository, read)
    request = FitRequest(user, user, version=version)
    choice = choose(repository, read, sizes, named("h100-80g"), "vllm", request)
    found = [e for e in choice.evidence if e.key == SLOTS and "block of states" in render(e.reason)]
    assert bool(found) == warned
    assert choice.verdict == ("may-not-start" if warned else "fits")
