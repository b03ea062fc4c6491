"""What is written for a device: cases that can be worked out by hand, and rules that hold for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.decisions.decide import decide
from importer.decisions.decision import Decision, KnownNone, Preferences, Target
from importer.document.attention import AttentionReason, attention
from importer.document.entry_facts import device_memory
from importer.hub.snapshot import RepoFile, Snapshot
from importer.memory import case, pages, shape, weights
from importer.memory.case import FULLER_SHARE
from importer.memory.choose import Choice, choose
from importer.memory.device_answers import Answer, DeviceAnswer, answer
from importer.memory.devices import GIB, Device, known, named, of_kind
from importer.memory.engine_keys import BLOCKS, CACHE, KV_DTYPE, TENSOR, FitRequest
from importer.memory.estimate import longest
from importer.memory.judgement import judge
from importer.memory.measured import AGAIN, Measured, Reported, ran
from importer.memory.planner import SHORTEST
from importer.memory.plans import Aim
from importer.memory.shape import Shape
from importer.sentences import render
from importer.service.http.query import room_of
from importer.signals import context, quantisation
from importer.signals.engine_capabilities import UNKNOWN
from importer.signals.evidence import Rule
from tests.facts import whys
from tests.memory.test_fit_splits import LLAMA_70B, MOE_FP8

QWEN_8B = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36,
    "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}  # fmt: skip
QWEN_8B_BYTES = 16_381_470_720  # model.safetensors.index.json of Qwen/Qwen3-8B
QWEN_7B_4BIT = {
    "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584, "intermediate_size": 18944,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
    "quantization": {"group_size": 64, "bits": 4},
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "first_k_dense_replace": 3, "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129280,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "v_head_dim": 128, "max_position_embeddings": 163840, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip


def snapshot(config: Mapping[str, Any], size: int | None = None) -> Snapshot:
    """A repository with this config and, where a size is given, one weight file of it."""
    files = () if size is None else (RepoFile("model.safetensors", size),)
    return Snapshot("./m", None, None, files, {}, {"config": config})


def fitted(
    config: Mapping[str, Any],
    device: str | Device | None,
    size: int | None = None,
    backend: str = "vllm",
    **user: Any,
) -> tuple[Choice, dict[str, Decision]]:
    """The choice and the decisions that come of it, as the pipeline makes them."""
    repository = snapshot(config, size)
    facts = [*context.evidence(repository, UNKNOWN), *quantisation.evidence(repository)]
    preferences = Preferences({key.replace("__", "."): value for key, value in user.items()})
    target = Target(backend)
    said = {k: d.value for k, d in decide(facts, preferences, target).items()}
    found = shape.read(repository)
    where = named(device) if isinstance(device, str) else device
    wanted = FitRequest(said, preferences.values.keys())
    made = choose(repository, found, weights.read(repository, found), where, backend, wanted)
    return made, decide([*facts, *made.evidence], preferences, target)


def test_8b_on_a_card_of_24_gb() -> None:
    """15.3 of 21.6 GiB are weights; 40,960 tokens of 144 KiB make 5.6 more: not beside the rest."""
    plain = {"engine_args__kv_cache_dtype": "auto", "engine_args__max_num_seqs": 256}
    made, decisions = fitted(QWEN_8B, "rtx4090", QWEN_8B_BYTES, **plain)
    context = decisions["max_model_len"]
    assert made.verdict == "shortened"
    assert context.status == "planned"
    assert 20_000 < context.value < 40_960
    assert context.value % 1024 == 0
    assert "weights 15.3 GiB, KV cache 144 KiB per token" in whys(context)[0]
    assert [o.value for o in context.overruled] == [40960]
    assert "tensor_parallel_size" not in decisions
    assert [device.label for device in made.holds] == ["rtx-pro-4500"]


def test_keys_in_8_bits_precede_a_shorter_context() -> None:
    """Half the bytes for each token, on cards that calculate in 8 bits."""
    made, decisions = fitted(QWEN_8B, "rtx4090", QWEN_8B_BYTES)
    assert made.verdict == "fits"
    assert (decisions["max_model_len"].value, decisions["max_model_len"].status) == (40960, "vendor")
    assert decisions["engine_args.kv_cache_dtype"].value == "fp8"
    assert any("answers may differ" in why for why in made.to_json()["plans"][0]["why"])
    assert [p.is_fp8 for p in made.plans] == [True, False]
    made, decisions = fitted(QWEN_8B, "rtx3090", QWEN_8B_BYTES, engine_args__max_num_seqs=256)
    assert made.verdict == "shortened", "its cards do not calculate in 8 bits"
    assert "engine_args.kv_cache_dtype" not in decisions


@pytest.mark.slow
def test_the_longest_context_is_estimated_as_any_other() -> None:
    """The search varies the caches alone: nothing else may depend on the context."""
    for config, device, backend in ((QWEN_8B, "rtx4090", "vllm"), (QWEN_8B, "m1-pro-16g", "mlx")):
        made, _ = fitted({**config, "max_position_embeddings": 10**6}, device, 10**10, backend=backend)
        assert made.case is not None
        plan = made.plans[0]
        for tokens in (plan.context, plan.context // 2):
            total = plan.case.fit(tokens, plan.split).total.likely
            assert tokens <= longest(made.case.shape, plan.fit, total) < tokens + 256


def test_8b_on_a_card_of_80_gb() -> None:
    made, decisions = fitted(QWEN_8B, "8xh100-80g", QWEN_8B_BYTES)
    assert made.verdict == "fits"
    context = decisions["max_model_len"]
    assert (context.value, context.status, context.overruled) == (40960, "vendor", ())
    assert "8 h100-80g, 72.8 GiB of each," in whys(context)[1]
    assert "tensor_parallel_size" not in decisions
    assert decisions["engine_args.data_parallel_size"].value == 8, "a copy on each card, none idle"
    assert (decisions["dtype"].value, decisions["dtype"].status) == ("bfloat16", "vendor")
    assert decisions["gpu_memory_utilization"].value == 0.92


@pytest.mark.slow
def test_sglang_shares_layers_over_cards_and_sets_the_rest_itself() -> None:
    made, decisions = fitted(LLAMA_70B, "8xh100-80g", 141_107_412_992, backend="sglang")
    assert made.verdict == "fits"
    assert decisions["tensor_parallel_size"].value == 8
    assert not set(decisions) & {"gpu_memory_utilization", "engine_args.pipeline_parallel_size"}
    config = {**MOE_FP8, "max_position_embeddings": 262144}
    _, decisions = fitted(config, "4xrtx3090", 31_200_000_000, backend="sglang")
    assert "engine_args.pipeline_parallel_size" not in decisions
    made, _ = fitted(LLAMA_70B, "rtx4090", 141_107_412_992, backend="sglang")
    assert all(device.kind in {"cuda", "rocm"} for device in made.holds)


def test_70b_on_one_card() -> None:
    made, decisions = fitted(LLAMA_70B, "rtx4090", 141_107_412_992)
    context = decisions["max_model_len"]
    assert made.verdict == "too-large"
    assert (context.value, context.status) == (131072, "vendor")
    assert whys(context)[1].startswith("warning: it does not fit rtx4090: weights 131.4 GiB")
    assert whys(context)[1].endswith("; the document is for 8xrtx4090")
    assert decisions["tensor_parallel_size"].value == 8
    assert made.plans[0].case.device.label == "8xrtx4090"
    assert made.holds
    assert all(device.label in whys(context)[1] for device in made.holds)


def test_7b_of_4_bits_on_a_notebook() -> None:
    made, decisions = fitted(QWEN_7B_4BIT, "m3-max-64g", 4_284_275_000, backend="mlx")
    assert made.verdict == "fits"
    assert (decisions["max_model_len"].value, decisions["max_model_len"].status) == (32768, "vendor")
    assert not set(decisions) & {"dtype", "gpu_memory_utilization", "tensor_parallel_size"}
    assert fitted(QWEN_7B_4BIT, "m1-8g", 4_284_275_000, backend="mlx")[0].verdict == "shortened"


@pytest.mark.slow
def test_a_larger_share_only_where_it_helps() -> None:
    tight = replace(named("rtx4090"), memory=int(21.8 * GIB))
    shares = [
        fitted({**QWEN_8B, "max_position_embeddings": n}, tight, QWEN_8B_BYTES)[1] for n in (2048, 40960)
    ]
    assert [d["gpu_memory_utilization"].value for d in shares] == [0.92, FULLER_SHARE]
    assert "the context would be shorter" in whys(shares[1]["gpu_memory_utilization"])[0]
    spark = fitted(LLAMA_70B, "dgx-spark", 70_000_000_000)[1]
    assert spark["gpu_memory_utilization"].value == 0.8, "its memory is the system's, too"


def test_a_card_that_the_engine_does_not_run_on_is_named() -> None:
    _, decisions = fitted(QWEN_8B, "p100", QWEN_8B_BYTES // 4, dtype="float16")
    assert "compute capability 7.0, and the card has 6.0" in " ".join(
        whys(decisions["gpu_memory_utilization"])
    )
    assert any(one.stops for one in attention({**PARSERLESS, **decisions}))
    _, decisions = fitted(QWEN_8B, "t4", QWEN_8B_BYTES // 4, dtype="float16")
    assert "capability" not in " ".join(whys(decisions["gpu_memory_utilization"]))


def test_a_share_that_another_program_leaves_no_room_for_may_not_start() -> None:
    """It has 6 of 23.5 GiB: vLLM ends where its share is not free."""
    busy = replace(named("rtx4090"), free=int(17.5 * GIB))
    made, decisions = fitted(QWEN_8B, busy, QWEN_8B_BYTES // 4)
    assert made.verdict == "may-not-start"
    assert "set gpu_memory_utilization: 0.72" in whys(decisions["gpu_memory_utilization"])[-1]
    assert made.tries()[0] == {"gpu_memory_utilization": 0.72}
    assert fitted(QWEN_8B, replace(busy, free=int(23 * GIB)), QWEN_8B_BYTES // 4)[0].verdict == "fits"


@pytest.mark.slow
def test_what_the_user_set_is_an_input() -> None:
    def context(**user: Any) -> int:
        return int(fitted(QWEN_8B, "rtx4090", QWEN_8B_BYTES, **user)[1]["max_model_len"].value)

    usual = context(engine_args__kv_cache_dtype="auto")
    assert context(engine_args__kv_cache_dtype="auto", gpu_memory_utilization=0.85) < usual
    assert context(engine_args__kv_cache_dtype="fp8") == 40960
    assert context(tensor_parallel_size=2) == 40960
    assert context(engine_args={"kv_cache_dtype": "fp8"}) == 40960
    space: dict[str, Any] = {"engine_args__kv_cache_memory_bytes": 2 * GIB}
    assert context(**space, engine_args__kv_cache_dtype="auto") == 2 * GIB // (144 * 1024) // 1024 * 1024


DEALT = {"engine_args.enable_expert_parallel": True, "engine_args.data_parallel_size": 3}
KIMI_K3 = {k: v for k, v in DEEPSEEK.items() if k != "quantization_config"} | {"model_type": "kimi_k3"}
PARSERLESS = {"tool_parser": KnownNone((), ())}
PLAIN = {"engine_args.kv_cache_dtype": "auto"}


@pytest.mark.parametrize(
    ("device", "user", "verdict", "key", "said"),
    [
        ("rtx4090", {"max_model_len": 40960, "gpu_memory_utilization": 0.85, **PLAIN},
         "too-large", "max_model_len", "40,960 tokens do not fit; "),
        ("rtx4090", {"max_model_len": 40960, **PLAIN},
         "may-not-start", "max_model_len", "it may not start: "),
        ("rtx4090", {"max_model_len": 8192, "gpu_memory_utilization": 0.5},
         "too-large", "max_model_len", "it does not fit rtx4090"),
        ("rtx4090", {"max_model_len": 4096, "gpu_memory_utilization": 0.74, **PLAIN},
         "may-not-start", "max_model_len", "0 tokens are safe"),  # the low end fits
        ("rtx4090", {CACHE: int(6.5 * GIB), "max_model_len": 4096}, "may-not-start", CACHE, "it may not"),
        ("rtx5090", {"gpu_memory_utilization": 0.99, "max_model_len": 8192},
         "may-not-start", "gpu_memory_utilization", "set gpu_memory_utilization: 0.97"),
        ("rtx4090", {BLOCKS: 512, "max_model_len": 40960}, "too-large", BLOCKS, "holds 8,176 tokens"),
        ("h100-80g", {CACHE: GIB, "max_model_len": 40960}, "too-large", CACHE, "1.0 GiB holds 14,544 tokens"),
        ("rtx4090", {CACHE: 20 * GIB, "max_model_len": 4096}, "too-large", CACHE, "have 6.3 GiB beside"),
        ("v100-32g", {"dtype": "bfloat16"}, "fits", "dtype", "since it lacks"),
        ("2xh100-80g", {"tensor_parallel_size": 4},
         "too-large", "tensor_parallel_size", "it takes 4 cards, and 2xh100-80g has 2"),
    ],
)  # fmt: skip
def test_values_of_the_users_are_judged_as_they_stand(
    device: str | None, user: dict[str, Any], verdict: str, key: str, said: str
) -> None:
    """The document keeps them, and has the reason why its engine does not start, or may not."""
    named_values = {k.replace(".", "__"): v for k, v in user.items()}
    made, decisions = fitted(QWEN_8B, device, QWEN_8B_BYTES, **named_values)
    assert {k: decisions[k].value for k in user} == user
    assert made.verdict == verdict
    texts = whys(decisions[key])
    assert any(text.startswith("warning: ") and said in text for text in texts), texts
    stops = [one for one in attention({**PARSERLESS, **decisions}) if one.stops]
    assert bool(stops) == (verdict != "may-not-start")


@pytest.mark.parametrize(
    ("user", "part", "least", "most"),
    [
        ({"engine_args.cpu_offload_gb": 4}, "weights", 11.2, 11.3),  # of 15.26
        ({"quantization": "fp8"}, "weights", 8.7, 9.0),  # the rows of tokens stay
        ({"engine_args.compilation_config": {"cudagraph_mode": "NONE"}}, "graphs", 0, 0),
        ({"engine_args": {"enforce_eager": True}}, "graphs", 0, 0),
        ({"engine_args.compilation_config": {"mode": 0}}, "graphs", 0.2, 0.6),  # of decoding, without parts
        ({}, "graphs", 0.2, 0.6),
        ({"engine_args.max_num_seqs": 4}, "graphs", 0.08, 0.12),  # four sizes
        ({"engine_args.compilation_config": {"cudagraph_capture_sizes": [1, 2]}}, "graphs", 0.07, 0.1),
        # 64 x 16 ranks beside seven matrices of 36 layers, and the head: 5.2 + 0.3 GiB.
        ({"engine_args.enable_lora": True, "engine_args.max_loras": 64}, "adapters", 5.4, 5.6),
        ({"engine_args.max_loras": 64}, "adapters", 0, 0),
    ],
)
def test_settings_that_move_memory_are_counted(
    user: dict[str, Any], part: Any, least: float, most: float
) -> None:
    made, _ = fitted(QWEN_8B, "h100-80g", QWEN_8B_BYTES, **{k.replace(".", "__"): v for k, v in user.items()})
    assert made.fit is not None
    term = made.fit.term(part)
    assert least <= (0 if term is None else term.amount.likely / GIB) <= most


def test_a_setting_of_unknown_size_widens_the_range_and_is_told() -> None:
    plain, _ = fitted(QWEN_8B, "h100-80g", QWEN_8B_BYTES)
    made, decisions = fitted(QWEN_8B, "h100-80g", QWEN_8B_BYTES, engine_args__enable_dbo=True)
    assert plain.fit is not None
    assert made.fit is not None
    assert made.fit.total.high > plain.fit.total.high
    assert made.fit.total.low == plain.fit.total.low
    assert "does not know how much memory enable_dbo takes" in whys(decisions["engine_args.enable_dbo"])[1]
    _, decisions = fitted(QWEN_8B, "h100-80g", QWEN_8B_BYTES, engine_args__enable_dbo=False)
    assert whys(decisions["engine_args.enable_dbo"]) == ["set by the user"]


def test_each_engine_has_its_own_share_of_a_card() -> None:
    share = {"engine_args__mem_fraction_static": 0.5}
    made, decisions = fitted(QWEN_8B, "rtx4090", QWEN_8B_BYTES, backend="sglang", **share)
    assert made.plan is not None
    assert made.plan.share == 0.5
    assert "it does not fit rtx4090" in whys(decisions["max_model_len"])[-1]
    vllm, _ = fitted(QWEN_8B, "h100-80g", QWEN_8B_BYTES, **share)
    assert vllm.plan is not None
    assert vllm.plan.share == 0.92


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "device", "user", "key", "said"),
    [
        (DEEPSEEK, "3xh200", {"engine_args.moe_backend": "deep_gemm_mega_moe", **DEALT, TENSOR: 1},
         "engine_args.moe_backend", "256 experts do not divide by the 3 cards"),
        (DEEPSEEK, "32xh200", {TENSOR: 32, "engine_args.enable_expert_parallel": True},
         TENSOR, "blocks of scales do not divide by 32"),
        (KIMI_K3, "8xb200", {"engine_args.kv_cache_dtype": "fp8"},
         "engine_args.kv_cache_dtype", "vLLM asserts attention_config.use_prefill_query_quantization: true"),
    ],
)  # fmt: skip
def test_what_the_engine_asserts_of_a_model_is_told(
    config: dict[str, Any], device: str, user: dict[str, Any], key: str, said: str
) -> None:
    size = 600 * GIB if config is DEEPSEEK else 20 * GIB
    _, decisions = fitted(config, device, size, **{k.replace(".", "__"): v for k, v in user.items()})
    assert any(said in text for text in whys(decisions[key])), whys(decisions[key])
    assert any(one.stops for one in attention({**PARSERLESS, **decisions}))


@pytest.mark.slow
@pytest.mark.parametrize(("device", "warned"), [("8xa100-80g", True), ("xeon6", True), ("8xh200", False)])
def test_latent_attention_has_a_cache_in_8_bits_on_newer_cards_alone(device: str, warned: bool) -> None:
    _, decisions = fitted(DEEPSEEK, device, 688_586_727_753, engine_args__kv_cache_dtype="fp8")
    assert warned == ("no cache in 8 bits for latent attention" in " ".join(whys(decisions[KV_DTYPE])))
    _, decisions = fitted(QWEN_8B, "a100-80g", QWEN_8B_BYTES, engine_args__kv_cache_dtype="fp8")
    assert "latent" not in " ".join(whys(decisions[KV_DTYPE]))


def test_no_plan_has_a_cache_that_its_model_asserts_more_of() -> None:
    """Elsewhere keys in 8 bits precede a shorter context."""
    for config, dtype in ((KIMI_K3, None), ({**KIMI_K3, "model_type": "deepseek_v3"}, "fp8")):
        _, decisions = fitted(config, "b200", 158 * GIB)
        found = decisions.get("engine_args.kv_cache_dtype")
        assert (None if found is None else found.value) == dtype


def test_a_context_that_the_engine_chooses_is_judged_by_a_short_one() -> None:
    _, decisions = fitted(QWEN_8B, "rtx4090", QWEN_8B_BYTES, max_model_len="auto")
    assert decisions["max_model_len"].value == "auto"
    assert not any(one.stops for one in attention({**PARSERLESS, **decisions}))


@pytest.mark.parametrize("device", ["rtx4090", "2xh100-80g", "m3-max-64g", "xeon-64g"])
@pytest.mark.parametrize(("config", "size"), [(QWEN_8B, QWEN_8B_BYTES), (QWEN_7B_4BIT, 4_284_275_000)])
def test_what_is_chosen_is_judged_to_fit(config: dict[str, Any], size: int, device: str) -> None:
    where = named(device) if device in known() else of_kind("cpu", "xeon", 64 * GIB)
    made, _ = fitted(config, where, size, "mlx" if where.kind == "metal" else "vllm")
    assert made.case is not None
    chosen = {e.key: e.value for e in made.evidence if e.rule is Rule.FIT}
    assert judge(made.case, FitRequest({**made.case.request.values, **chosen})).problems == ()


def test_a_measurement_takes_the_place_of_the_estimate() -> None:
    """Context, sequences and reason follow from it; on other devices and with other settings they do not."""
    repository = snapshot(QWEN_8B, QWEN_8B_BYTES)
    read = shape.read(repository)
    size = weights.read(repository, read)
    card = named("rtx4090")

    def chosen(device: Device, measured: Measured | None, **more: Any) -> Choice:
        request = FitRequest({"dtype": "bfloat16", KV_DTYPE: "auto", **more}, ["dtype", KV_DTYPE])
        return choose(repository, read, size, device, "vllm", request, Aim(concurrency=8), measured)

    plain = chosen(card, None)
    assert plain.fit is not None
    load = plain.fit.load
    device = {"kind": "cuda", "memory": card.memory, "capability": card.capability, "name": "this machine"}
    found = Measured(
        "vllm", "0.33.0", None, "2026-11-26T22:00:00Z", 60.0, device, ran(load), 19 * GIB,
        Reported(weights=int(15.3 * GIB)), served=True,
    )  # fmt: skip
    less = chosen(card, found)
    assert less.measured == found
    assert less.plans[0].context < plain.plans[0].context
    each = 36 * 2 * 8 * 128 * 2
    room = less.plans[0].budget - 19 * GIB - AGAIN
    assert less.plans[0].context == pytest.approx(room / each, rel=0.02)
    assert "measured at a start of vllm 0.33.0" in render(less.reason)
    assert less.plans[0].sequences < plain.plans[0].sequences
    assert chosen(named("l4"), found).measured is None
    assert chosen(card, found, enforce_eager=True).measured is None


@pytest.mark.parametrize(
    ("device", "stored", "model_type", "expected", "status"),
    [
        ("t4", "bfloat16", "qwen3", "float16", "planned"),
        ("t4", "bfloat16", "gemma3_text", "float32", "planned"),
        ("t4", "float16", "qwen3", "float16", "vendor"),
        ("rtx3090", "float32", "qwen3", "bfloat16", "planned"),
        ("cpu", "bfloat16", "qwen3", "bfloat16", "vendor"),
    ],
)
def test_dtype(device: str, stored: str, model_type: str, expected: str, status: str) -> None:
    config = {
        **QWEN_8B, "model_type": model_type, "torch_dtype": stored, "num_hidden_layers": 2,
        "hidden_size": 256, "max_position_embeddings": 512,
    }  # fmt: skip
    _, decisions = fitted(config, named(device).with_memory(16 * GIB))
    assert (decisions["dtype"].value, decisions["dtype"].status) == (expected, status)
    assert "dtype" not in fitted(config, "m4-16g", backend="mlx")[1]


def test_on_processors_the_cache_is_bounded() -> None:
    """An eighth of the memory, at most for eight sequences, at least for one."""
    small = {**QWEN_8B, "num_hidden_layers": 2, "hidden_size": 256, "vocab_size": 1000}
    here = replace(named("cpu"), memory=32 * GIB)

    def cache(tokens: int) -> tuple[int, int]:
        _, decisions = fitted({**small, "max_position_embeddings": tokens}, here)
        return decisions["engine_args.kv_cache_memory_bytes"].value, decisions["max_model_len"].value

    one = 8 * 1024  # two layers, eight heads of 128, keys and values, two bytes
    size, context = cache(4096)
    assert (context, size >= 8 * 4096 * one, size < 10 * 4096 * one) == (4096, True, True)
    size, context = cache(262_144)
    assert (size, context) == (4 * GIB + 2**20, 262_144)  # an eighth, and a block
    size, context = cache(1_048_576)
    assert context == 1_048_576
    assert 1_048_576 * one <= size < 1.1 * 1_048_576 * one


@pytest.mark.parametrize("config", [{}, {"model_type": "nobody"}, {**QWEN_8B, "num_hidden_layers": "many"}])
def test_what_cannot_be_told_changes_nothing(config: dict[str, Any]) -> None:
    made, decisions = fitted(config, "rtx4090")
    assert made.verdict == "unknown"
    assert made.message.startswith("not known what rtx4090 holds: ")
    assert [e.key for e in made.evidence if render(e.reason).startswith("warning: not known")] == [
        "max_model_len"
    ]
    assert not set(decisions) & {"gpu_memory_utilization", "tensor_parallel_size"}
    assert made.to_json()["chosen"] == {}


DEVICES = st.sampled_from(["rtx4090", "2xl4", "8xh100-80g", "3xa100-40g", "t4", "mi300x", "dgx-spark"])
CONFIGS = st.fixed_dictionaries(
    {
        "model_type": st.sampled_from(["llama", "qwen3", "gemma3_text"]),
        "num_hidden_layers": st.integers(1, 100), "hidden_size": st.sampled_from([256, 2048, 8192]),
        "intermediate_size": st.sampled_from([512, 14336, 28672]),
        "num_attention_heads": st.sampled_from([1, 14, 32, 64]),
        "num_key_value_heads": st.sampled_from([1, 2, 8]), "head_dim": st.sampled_from([64, 128]),
        "vocab_size": st.integers(100, 250_000), "max_position_embeddings": st.integers(1, 10**7),
        "torch_dtype": st.sampled_from(["bfloat16", "float16", "float32"]),
    }
)  # fmt: skip


@pytest.mark.slow
@given(CONFIGS, DEVICES, st.integers(1, 10**12))
def test_the_rules_hold(config: dict[str, Any], device: str, size: int) -> None:
    made, decisions = fitted(config, device, size)
    vendor, context = config["max_position_embeddings"], decisions["max_model_len"]
    assert made.fit is not None
    assert made.plan is not None
    assert made.device is not None
    assert made.plan.split.devices == made.device.count or made.verdict == "too-large"
    within = made.fit.total.likely + made.fit.spare <= made.plan.budget
    if made.verdict == "shortened":
        assert min(SHORTEST, vendor) <= context.value < vendor
        assert within
        assert context.status == "planned"
    else:
        assert (context.value, context.status) == (vendor, "vendor")
        assert within or made.verdict == "too-large"
    for plan in made.plans:
        assert plan.split.devices == plan.case.device.count, "no card of a plan is idle"
    if made.verdict == "too-large":
        assert any(text.startswith("warning: ") for text in whys(context))


def test_where_the_safe_end_holds_nothing_the_document_may_not_start() -> None:
    """An encoder of pictures takes 2 to 2.6 GiB: with half of the ranges it fits, with all it does not."""
    tower = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16,
             "spatial_merge_size": 2, "temporal_patch_size": 2}  # fmt: skip
    pictures = {**QWEN_8B, "vision_config": tower}
    made, decisions = fitted(pictures, "rtx4090", QWEN_8B_BYTES + 2 * GIB, max_model_len=16384)
    assert made.verdict == "may-not-start"
    assert decisions["gpu_memory_utilization"].value == 0.92, "the encoder needs what the share leaves"
    found = attention({**PARSERLESS, **decisions})
    assert AttentionReason.MAY_NOT_START in {one.kind for one in found}
    assert not any(one.stops for one in found)


@pytest.mark.parametrize(
    ("device", "user", "first"),
    [
        ("rtx5090", {"gpu_memory_utilization": 0.99}, {"gpu_memory_utilization": 0.95}),
        ("rtx4090", {"max_model_len": 40960, "gpu_memory_utilization": 0.85, **PLAIN},
         {"max_model_len": 8192}),
        ("rtx5070ti", PLAIN, {"engine_args.cpu_offload_gb": 6, "max_model_len": 8192}),
        ("h100-80g", {}, None),
        ("rtx3060-12g", PLAIN, None),
    ],
)  # fmt: skip
def test_settings_that_would_start_are_named(
    device: str, user: dict[str, Any], first: dict[str, Any] | None
) -> None:
    """Each is judged as the document that it makes."""
    made, _ = fitted(QWEN_8B, device, QWEN_8B_BYTES, **{k.replace(".", "__"): v for k, v in user.items()})
    found = made.tries()
    assert (dict(found[0]) if found else None) == first
    for change in found:
        again = {**user, **change}
        made, _ = fitted(
            QWEN_8B, device, QWEN_8B_BYTES, **{k.replace(".", "__"): v for k, v in again.items()}
        )
        assert made.verdict in {"fits", "shortened"}, change


def test_all_devices_are_judged_with_few_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on the model alone is counted once, and a search for a context makes no terms."""
    repository = snapshot(QWEN_8B, QWEN_8B_BYTES)
    read, made = shape.read(repository), Counter[str]()
    assert isinstance(read, Shape)
    size = weights.read(repository, read)
    counted = case.estimate
    monkeypatch.setattr(case, "estimate", lambda *a: made.update(["estimate"]) or counted(*a))
    pages._pool.cache_clear()
    decide = partial(choose, repository, read, size, backend="vllm", request=FitRequest({}), alone=True)
    some = [device for device in known().values() if device.memory is not None]
    found = [answer("vllm", device, lambda one: decide(device=one)) for device in some]
    assert {one.answer for one in found} >= {Answer.WHOLE, Answer.PART, Answer.NO}
    assert made["estimate"] < 40 * len(found)
    assert pages._pool.cache_info().misses < 4 * len(found)
    assert min(found, key=DeviceAnswer.order).answer is Answer.WHOLE
    assert all(decide(device=one.whole_on).verdict == "fits" for one in found if one.whole_on is not None)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "size"), [(QWEN_8B, QWEN_8B_BYTES), (MOE_FP8, 31_200_000_000)])
def test_the_list_and_the_judgement_of_a_device_are_at_most_a_step_apart(
    config: dict[str, Any], size: int
) -> None:
    """A list compares sizes that an import for no device has stored."""
    repository, context = snapshot(config, size), config.get("max_position_embeddings", 32_768)
    read = shape.read(repository)
    request = FitRequest({"max_model_len": context})
    decide = partial(
        choose, repository, read, weights.read(repository, read), backend="vllm", request=request
    )
    needs = device_memory(decide(device=None).to_json())
    assert needs is not None
    steps = [Answer.WHOLE, Answer.PART, Answer.MAY_NOT_START, Answer.NO]
    for device in (one for one in known().values() if one.memory is not None):
        room = room_of(device.name)
        judged = answer("vllm", device, lambda one: decide(device=one, alone=True)).answer
        assert ("vllm" in room.backends) == (judged is not Answer.NOT_APPLICABLE), device.name
        if judged in steps:
            listed = Answer.WHOLE if needs.whole <= room.budget else Answer.NO
            listed = Answer.PART if needs.part <= room.budget < needs.whole else listed
            assert abs(steps.index(listed) - steps.index(judged)) <= 1, device.name
