"""Weights by the best of the files' words, the estimate's parts, and the longest context of a budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.hub.snapshot import RepoFile, Snapshot
from importer.memory import pages, rest, weights
from importer.memory.devices import named
from importer.memory.estimate import estimate, longest, padding
from importer.memory.estimate_types import Amount, Load, SizeReason, Term, TermReason
from importer.memory.layers import Latent, Pictures
from importer.memory.quantised import scheme
from importer.memory.shape import Shape, describe
from importer.memory.weights import Weights
from importer.reasons import Reason
from importer.sentences import render
from tests.toy_shapes import TOYS

CONFIG = TOYS["full: grouped heads"]
BYTES = 12_593_664  # of that toy in bfloat16, as vLLM counts them
GIB = 1 << 30


@dataclass(frozen=True)
class Header:
    dtype: str
    shape: tuple[int, ...]
    size: int


def snapshot(
    files: Mapping[str, int | None] | None = None, texts: Mapping[str, Any] | None = None, **info: Any
) -> Snapshot:
    listed = tuple(RepoFile(path, size) for path, size in (files or {}).items())
    written = {"config.json": json.dumps(CONFIG), **{k: json.dumps(v) for k, v in (texts or {}).items()}}
    return Snapshot("a/b", "a/b", "0" * 40, listed, written, info=info)


def of(name: str) -> Shape:
    found = describe(TOYS[name])
    assert isinstance(found, Shape)
    return found


def told(given: Snapshot, headers: Mapping[str, Header] | None = None) -> Weights:
    found = weights.read(given, of("full: grouped heads"), headers)
    assert isinstance(found, Weights)
    return found


INDEX = "model.safetensors.index.json"
SHARDS = {f"model-0000{i}-of-00002.safetensors": BYTES // 2 + 4000 for i in (1, 2)}


def test_headers_tell_the_layers_that_only_draft() -> None:
    names = {"model.layers.7.a": 10, "model.layers.8.a": 3, "mtp.layers.0.a": 4, "visual.layers.30.a": 5}
    found = told(snapshot(), {name: Header("BF16", (size,), size) for name, size in names.items()})
    assert found.drafts == 7


def test_the_index_counts_where_the_files_bear_it_out() -> None:
    found = told(snapshot(SHARDS, {INDEX: {"metadata": {"total_size": BYTES}}}))
    assert (found.source, found.amount) == ("index", Amount.exactly(BYTES))
    copied = told(snapshot(SHARDS, {INDEX: {"metadata": {"total_size": 4 * BYTES}}}))
    assert copied.source == "files"
    assert copied.amount.likely == sum(SHARDS.values())


def test_the_hubs_totals_count_unless_it_counted_packed_values() -> None:
    found = told(snapshot(SHARDS, safetensors={"BF16": BYTES // 2}, safetensors_total=BYTES // 2))
    assert (found.source, found.amount.likely, found.parameters) == ("api", BYTES, BYTES // 2)
    packed = told(snapshot(SHARDS, safetensors={"U8": 40 * BYTES}))
    assert packed.source == "files"
    alone = told(snapshot(safetensors={"BF16": BYTES // 2, "U8": 5}))
    assert alone.source == "config"


def test_the_config_alone_gives_a_range_around_the_truth() -> None:
    found = told(snapshot())
    assert found.source == "config"
    assert found.amount.low < BYTES < found.amount.high
    assert abs(found.amount.likely / BYTES - 1) < 0.001
    assert found.why.kind is SizeReason.CONFIG


def test_what_a_config_does_not_tell_widens_the_range() -> None:
    """A tower of the authors' own code, and a dtype that is not named."""
    plain = told(snapshot()).amount
    for more in ({"mm_vision_tower": "clip", "vision_config": {"name": "own"}}, {"torch_dtype": None}):
        changed = describe(CONFIG | more)
        found = weights.read(snapshot(), changed)
        assert isinstance(found, Weights)
        assert found.amount.low == plain.low
        assert found.amount.high > 1.1 * plain.high


def test_no_weights_are_counted_twice() -> None:
    copies = {
        "consolidated.safetensors": BYTES, "model.fp16.safetensors": BYTES // 2, "onnx/model.onnx": BYTES,
        "original/model.safetensors": BYTES, "model-Q4_K_M.gguf": BYTES // 4, "pytorch_model.bin": BYTES,
        "adapter_model.safetensors": 1000,
    }  # fmt: skip
    given = snapshot({**SHARDS, **copies})
    assert weights.files(given) == tuple(SHARDS)
    assert told(given).amount.likely == sum(SHARDS.values())


def test_only_files_of_the_index_are_loaded() -> None:
    mapped = {f"layer.{i}": name for i, name in enumerate(SHARDS)}
    given = snapshot({**SHARDS, "model.safetensors": BYTES}, {INDEX: {"weight_map": mapped}})
    assert weights.files(given) == tuple(SHARDS)


@pytest.mark.parametrize(
    ("block", "bits"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8.002),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4.156),
        ({"quant_method": "mxfp4"}, 4.25),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4.125),
        ({"group_size": 64, "bits": 4}, 4.5),
        ({"config_groups": {"a": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}, 4.5),
    ],
)
def test_bits_of_a_quantised_parameter(block: dict[str, Any], bits: float) -> None:
    found = scheme({"quantization_config": block}, {}, {}, 8)
    assert found is not None
    assert float(found.bits) == pytest.approx(bits, abs=0.01)


def test_what_a_scheme_leaves_out_stays_as_it_was() -> None:
    block = {"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["self_attn"]}
    found = scheme({"quantization_config": block}, {}, {}, 8)
    assert found is not None
    assert dict(found.left) == {"attention": 1}
    few = {**block, "modules_to_not_convert": ["model.layers.0.self_attn", "model.layers.1.self_attn"]}
    partly = scheme({"quantization_config": few}, {}, {}, 8)
    assert partly is not None
    assert float(partly.left["attention"]) == 0.25


INDEXED = Reason(SizeReason.INDEX, file="index.json", size=1)
WEIGHTS = Weights(Amount.exactly(BYTES), BYTES // 2, "index", INDEXED)


def test_the_parts_of_an_estimate() -> None:
    fit = estimate(of("full: grouped heads"), WEIGHTS, Load(4096), "vllm")
    assert [t.part for t in fit.terms] == ["weights", "kv cache", "activations", "graphs", "overhead"]
    kept = fit.term("kv cache")
    assert kept is not None
    assert kept.amount == Amount.exactly((4096 // 16 + 1) * 16 * 8 * 2 * 2 * 64 * 2)
    assert all(render(t.why) for t in fit.terms)
    assert fit.to_json()["total"] == fit.total.to_json()
    assert estimate(of("full: grouped heads"), WEIGHTS, Load(4096, eager=True), "vllm").term("graphs") is None


def test_drafting_layers_load_where_they_are_asked_for() -> None:
    found = describe(CONFIG | {"num_nextn_predict_layers": 1})
    assert isinstance(found, Shape)
    without, with_drafts = (estimate(found, WEIGHTS, Load(4096, drafts=n), "vllm").terms[0] for n in (0, 1))
    assert without.amount.likely < with_drafts.amount.likely == BYTES
    assert "only draft" in render(without.why)


def test_devices_share_weights_but_each_holds_its_norms() -> None:
    devices = 4
    fit = estimate(of("full: grouped heads"), WEIGHTS, Load(4096, tensor_parallel=devices), "vllm")
    assert BYTES // devices < fit.terms[0].amount.likely < 1.1 * BYTES / devices
    staged = estimate(of("full: grouped heads"), WEIGHTS, Load(4096, pipeline_parallel=devices), "vllm")
    assert staged.terms[0].amount.likely < BYTES


def test_mlx_has_no_pool_no_graphs_and_rotates() -> None:
    toy = of("window: five of six, no list")
    plain = estimate(toy, WEIGHTS, Load(8192, device="metal"), "mlx")
    assert {t.part for t in plain.terms} == {"weights", "kv cache", "activations", "overhead"}
    bounded = estimate(toy, WEIGHTS, Load(8192, device="metal", rotating=1024), "mlx")
    assert bounded.terms[1].amount.likely < plain.terms[1].amount.likely


def test_the_longest_context_of_a_budget() -> None:
    toy = of("full: grouped heads")
    load = Load(1 << 20, device="cpu", slots=1, batched_tokens=256)
    budget = estimate(toy, WEIGHTS, load, "vllm").total.likely
    assert longest(toy, estimate(toy, WEIGHTS, load, "vllm"), budget) == load.context
    found = longest(toy, estimate(toy, WEIGHTS, load, "vllm"), budget - GIB)
    assert 0 < found < load.context
    for more, fits in ((0, True), (128, False)):
        made = estimate(toy, WEIGHTS, replace(load, context=found + more), "vllm")
        assert (made.total.likely <= budget - GIB) == fits
    large = Weights(Amount.exactly(80 * GIB), None, "api", "told")
    assert longest(toy, estimate(toy, large, load, "vllm"), 24 * GIB) == 0


@given(
    st.integers(1, 1 << 20),
    st.integers(1, 64),
    st.sampled_from(sorted(TOYS)),
    st.sampled_from(["vllm", "mlx"]),
)
def test_more_of_anything_takes_no_less(context: int, sequences: int, name: str, backend: str) -> None:
    toy = of(name)
    fit = estimate(toy, WEIGHTS, Load(context, sequences), backend)
    more = estimate(toy, WEIGHTS, Load(context + 512, sequences + 1), backend)
    assert fit.total.low <= fit.total.likely <= fit.total.high
    assert more.total.likely >= fit.total.likely


def peak(load: Load, kind: str = "full: grouped heads", **config: object) -> Term:
    """The term of one step, of a toy or of a config."""
    shape = describe(config) if config else of(kind)
    assert isinstance(shape, Shape)
    (found,) = (t for t in rest.terms(shape, load, BYTES, paged=True) if t.part == "activations")
    return found


TOWER = {"hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16}
LARGE = {**CONFIG, "vocab_size": 150_000}


def test_a_step_takes_the_largest_of_layers_sampling_and_pictures() -> None:
    """One comes after the other; the term names the largest."""
    few, many = Load(4096, slots=1, batched_tokens=8192), Load(4096, slots=1024, batched_tokens=8192)
    assert peak(few, **LARGE).why.kind is TermReason.ACTIVATIONS
    sampled = peak(many, **LARGE)
    assert sampled.why.kind is TermReason.SAMPLING
    assert peak(replace(many, batched_tokens=64), **LARGE).amount.likely < sampled.amount.likely
    kept = {
        **CONFIG,
        "vision_config": {**TOWER, "depth": 27, "spatial_merge_size": 2, "temporal_patch_size": 2},
    }
    seen = peak(few, **kept)
    assert seen.why.kind is TermReason.PICTURES
    assert 1.5 * GIB < seen.amount.likely < 2.2 * GIB, "16,384 tokens of four patches"
    assert peak(replace(few, context=65_536), **kept).amount.high == 2 * seen.amount.high, "a longer film"
    assert peak(replace(few, pictures=False), **kept) == peak(few, **CONFIG)
    pooled = {**CONFIG, "vision_config": {**TOWER, "num_hidden_layers": 27, "pooling_kernel_size": 3}}
    small, large = (peak(replace(few, batched_tokens=n), **pooled).amount.likely for n in (2048, 16384))
    assert large > 7 * small, "small pictures fill the step"


def test_what_the_version_of_the_engine_changes() -> None:
    load = Load(4096, slots=256, batched_tokens=2048)
    old, now = replace(load, version="0.11.0"), replace(load, version="0.33.0")
    either, sorts, takes = (peak(one, **LARGE).amount for one in (load, old, now))
    assert sorts.likely > 2 * takes.likely, "it sorted"
    assert takes.high < either.high == sorts.likely, "of an unknown version"
    toy = of("full: grouped heads")
    graphs = [estimate(toy, WEIGHTS, one, "vllm").term("graphs") for one in (old, now)]
    assert [found is None for found in graphs] == [True, False]
    assert pages.in_flight(replace(load, version="0.25.1")) * 2 == pages.in_flight(now)


@pytest.mark.parametrize(
    ("kind", "version", "graphs", "pictures"),
    [
        ("full: grouped heads", "0.26.0", False, False),  # an H200 showed these two
        ("full: experts", "0.26.0", True, True),
        ("full: grouped heads", "0.28.0", False, True),
        ("delta: three of four", "0.28.0", True, True),
        ("delta: three of four", "0.29.0", True, True),
    ],
)
def test_what_the_model_runner_of_a_version_counts(
    kind: str, version: str, graphs: bool, pictures: bool
) -> None:
    """vLLM's second one runs dense models since 0.25, and all since 0.29."""
    shape = replace(of(kind), pictures=Pictures(values=500_000, most=16_384))
    terms = estimate(shape, WEIGHTS, Load(4096, slots=8, version=version), "vllm").terms
    assert ("graphs" in {t.part for t in terms}) == graphs
    assert (TermReason.PICTURES in {t.why.kind for t in terms}) == pictures


def test_a_sparse_layer_keeps_workspaces_that_grow_with_the_context() -> None:
    """Forty keys of an indexer for each token, and logits for each row of the largest graph."""
    toy = of("latent: sparse, with an indexer")
    short, long = (
        {t.part: t.amount.likely for t in estimate(toy, WEIGHTS, Load(n, memory=180 * GIB), "vllm").terms}
        for n in (4096, 4096 + 10**6)
    )
    width = next(c.indexer for layer in toy.layers for c in layer if isinstance(c, Latent) and c.indexer)
    assert long["activations"] - short["activations"] == pytest.approx(40 * 10**6 * (width + 4), rel=0.01)
    assert long["graphs"] - short["graphs"] == pytest.approx(4 * 512 * 10**6, rel=0.01)


def test_the_second_runner_counts_tokens_for_each_sequence_that_may_run() -> None:
    """An int32 and a bit for each token of the vocabulary, among what vLLM counts since 0.27."""
    toy, rows = of("full: grouped heads"), (256, 1024)
    counted = {
        (version, n): estimate(toy, WEIGHTS, Load(4096, slots=n, version=version), "vllm").term("overhead")
        for version in ("0.26.0", "0.27.0")
        for n in rows
    }
    few, many = (counted["0.27.0", n].amount.likely for n in rows)  # type: ignore[union-attr]
    assert many - few == 768 * 4 * (toy.vocabulary + -(-toy.vocabulary // 32))
    assert counted["0.26.0", rows[0]] == counted["0.26.0", rows[1]]


def test_graphs_of_the_second_runner_are_beside_the_share_before_0_29() -> None:
    toy = of("full: grouped heads")
    beside = {
        v: rest.unshared(toy, Load(4096, memory=GIB, version=v)) for v in ("0.28.0", "0.33.0", "0.24.0")
    }
    assert beside["0.28.0"] > beside["0.33.0"] == beside["0.24.0"] > rest.DRIVER


def test_experts_in_mxfp4_are_padded_to_tiles() -> None:
    """gpt-oss-120b took 64.38 GiB of an H100 (vllm-project/vllm#33155), the 20b 13.72 of an A100."""
    block = {"quantization_config": {"quant_method": "mxfp4"}}
    routed = {"num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 2880}
    shape = describe({**CONFIG, **block, **routed, "hidden_size": 2880})
    assert isinstance(shape, Shape)
    loads = (
        Load(1, capability=90), Load(1, capability=80), Load(1, capability=80, tensor_parallel=8),
        Load(1, device="rocm"), Load(1, device="cpu"),
    )  # fmt: skip
    assert [float(padding(shape, load)) for load in loads] == pytest.approx(
        [3072 / 2880, 2944 * 3072 / 2880**2, 384 * 3072 / (360 * 2880), 3072**2 / 2880**2, 1]
    )


@pytest.mark.parametrize(
    ("card", "version", "tokens", "slots", "flight"),
    [
        ("h100-80g", "0.33.0", 8192, 1024, 16384),
        ("h100-80g", "0.27.1", 8192, 1024, 16384),
        ("h100-80g", "0.25.1", 8192, 1024, 8192),  # one step
        ("a100-80g", None, 2048, 256, 4096),  # vLLM excludes it by name
        ("a100-80g", "0.14.1", 2048, 256, 2048),
        ("b200", None, 16384, 1024, 32768),
        ("b200", "0.27.1", 8192, 1024, 16384),
        ("dgx-spark", "0.33.0", 2048, 256, 4096),
        ("dgx-spark", "0.32.0", 8192, 1024, 16384),
        ("rtx4090", "0.33.0rc1", 2048, 256, 4096),
        ("rtx4090", "odd", 2048, 256, 4096),
        ("rtx4090", "0.6.4", 8192, 256, 8192),  # a whole prompt, unless it is a long one
    ],
)
def test_the_defaults_of_a_step_are_those_of_the_version(
    card: str, version: str | None, tokens: int, slots: int, flight: int
) -> None:
    """By ``get_batch_defaults`` and ``max_in_flight_tokens`` in the releases' sources."""
    device = named(card)
    capability = pages.compute_number(device.capability)
    load = Load(8192, memory=device.memory, capability=capability, version=version)
    found = (pages.batched_default(load), pages.slots_default(load), pages.in_flight(load))
    assert found == (tokens, slots, flight)


@pytest.mark.parametrize(
    ("kind", "versions"),
    [
        ("window: every other layer", ("0.25.0", "0.26.0")),
        ("delta: three of four", ("0.28.0", "0.29.0")),
        ("delta: three of four", ("0.14.1", "0.17.0")),
    ],
)
def test_a_sequence_takes_what_it_takes_in_the_version(kind: str, versions: tuple[str, str]) -> None:
    """Beside these steps the rules are the same: the newest is what an unknown version counts as."""
    shape = of(kind)

    def size(version: str | None) -> int:
        load = Load(65536, memory=100 << 30, capability=90, version=version)
        pool = pages.pool(shape, load)
        return pool.sequence(pages.kept(load), pages.in_flight(load))

    assert size(versions[0]) < size(versions[1]) <= size(None) == size("0.33.0")
