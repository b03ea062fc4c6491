"""Shapes from configs: kinds of layers by their keys, defaults of transformers, and hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.app.study import check_layers
from importer.errors import RepositoryError
from importer.hub import local
from importer.memory import pages
from importer.memory.config_keys import LAYERS, MOST_LAYERS, Keys
from importer.memory.estimate import estimate
from importer.memory.estimate_types import Amount, Load, Unknown, UnknownReason
from importer.memory.layers import Attention, Latent, State
from importer.memory.shape import Shape, describe
from importer.memory.weights import Weights
from importer.sentences import render
from tests.toy_shapes import TOYS

PLAIN = {"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 128}


def shape(**config: Any) -> Shape:
    found = describe(PLAIN | config)
    assert not isinstance(found, Unknown), found.reason
    return found


def first(found: Shape) -> Any:
    return next(c for layer in found.layers for c in layer)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("full: grouped heads", {"full": 8}),
        ("window: all layers", {"window": 8}),
        ("window: every other layer", {"window": 4, "full": 4}),
        ("window: five of six, no list", {"window": 12, "full": 2}),
        ("window: heads of another number and width", {"full": 2, "window": 6}),
        ("shared: the last layers use earlier keys", {"window": 5, "full": 1}),
        ("chunk: three of four", {"chunk": 6, "full": 2}),
        ("latent: sparse, with an indexer", {"latent": 8}),
        ("latent: compressed, with windows", {"latent window": 8, "latent": 6}),
        ("mamba: nothing else", {"mamba": 8}),
        ("mamba2, attention, feed-forward apart", {"mamba2": 5, "full": 1}),
        ("delta: three of four", {"delta": 6, "full": 2}),
        ("kimi: delta attention beside MLA", {"kimi": 6, "latent": 2}),
        ("convolution: beside attention", {"convolution": 6, "full": 2}),
    ],
)
def test_kinds_of_layers(name: str, kinds: dict[str, int]) -> None:
    found = describe(TOYS[name])
    assert isinstance(found, Shape)
    assert found.kinds() == kinds


def test_the_language_model_is_found_inside_and_its_gaps_are_filled_from_transformers() -> None:
    """Gemma 3's own configs leave out heads and vocabulary."""
    inner = {
        "model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024,
    }  # fmt: skip
    sees = {"model_type": "siglip"}
    found = describe({"model_type": "gemma3", "text_config": inner, "vision_config": sees})
    assert isinstance(found, Shape)
    assert found.kinds() == {"window": 29, "full": 5}
    assert first(found) == Attention(8, 4, 256, 256, window=1024)
    assert (found.vocabulary, found.context) == (262_208, 131_072)
    assert [part.role for part in found.around] == ["embedding", "norm"]  # tied: no head


def test_null_hides_a_default() -> None:
    """Mistral 7B v0.2 has no window; transformers would give it one of 4096."""
    assert shape(model_type="mistral").kinds() == {"window": 4}
    assert shape(model_type="mistral", sliding_window=None).kinds() == {"full": 4}


def test_a_window_that_is_switched_off_is_none() -> None:
    assert shape(sliding_window=64, use_sliding_window=False).kinds() == {"full": 4}


@pytest.mark.parametrize(
    "config",
    [
        {"sliding_window": 0, "sliding_window_pattern": 2},
        {"attention_chunk_size": 0, "no_rope_layers": [1, 1, 1, 0]},
    ],
)
def test_a_pattern_of_a_size_of_zero_is_none(config: dict[str, Any]) -> None:
    assert shape(**config).layers == shape().layers


def test_a_group_of_one_layer_leaves_a_window_to_its_own_pattern() -> None:
    grouped = shape(layer_group_size=1, head_dim=64, sliding_window=64, sliding_window_pattern=2)
    assert grouped.kinds() == {"window": 2, "full": 2}


@pytest.mark.parametrize(
    ("keys", "kv_heads"),
    [
        ({"multi_query": True}, 1),
        ({"multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8}, 8),
        ({"multi_query_group_num": 2}, 2),
        ({"attn_config": {"kv_n_heads": 4}}, 4),
        ({"num_key_value_heads": [8, 8, 8, 8]}, 8),
        ({}, 16),
    ],
)
def test_heads_of_keys_under_their_many_names(keys: dict[str, Any], kv_heads: int) -> None:
    assert first(shape(num_attention_heads=16, **keys)).kv_heads == kv_heads


def test_layers_that_differ_in_their_own_blocks() -> None:
    """Nemotron NAS: some layers have no attention, others share a key head among more."""
    block = {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {"ffn_mult": 2.0, "no_op": False}}
    empty = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 1.0, "no_op": False}}
    found = shape(num_attention_heads=32, block_configs=[block, empty, empty, block])
    assert [len(layer) for layer in found.layers] == [1, 0, 0, 1]
    assert first(found).kv_heads == 4


def test_what_a_checkpoint_wants_its_keys_kept_in() -> None:
    scheme = {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    assert shape(quantization_config=scheme).kv_dtype == "fp8"
    beside = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    found = describe(PLAIN, beside)
    assert isinstance(found, Shape)
    assert found.kv_dtype == "fp8"
    assert shape().kv_dtype is None


def test_drafting_layers_are_counted_apart() -> None:
    with_drafts = shape(num_nextn_predict_layers=1, num_attention_heads=4, intermediate_size=128)
    assert sum(p.count for p in with_drafts.drafts) > 0
    assert {p.role for p in with_drafts.parts}.isdisjoint({"draft"})
    assert not shape().drafts


@pytest.mark.parametrize("missing", ["num_hidden_layers", "hidden_size", "vocab_size"])
def test_what_is_missing_is_said(missing: str) -> None:
    found = describe({k: v for k, v in PLAIN.items() if k not in {missing, "model_type"}})
    assert isinstance(found, Unknown)
    assert found.reason.kind is UnknownReason.SHAPE_FIELD


def test_no_work_without_bound() -> None:
    found = describe(PLAIN | {"num_hidden_layers": 10**9})
    assert isinstance(found, Unknown)
    assert found.reason.fields["most"] == MOST_LAYERS
    assert Keys({"n_layer": 1e30}, {}).count(*LAYERS) is None


@pytest.mark.parametrize("part", [(), ("text_config",), ("thinker_config", "vision_config")])
def test_a_config_with_layers_beyond_measure_is_refused_before_any_engine_reads_it(
    tmp_path: Path, part: tuple[str, ...]
) -> None:
    """transformers makes a list of as many: vLLM's worker took 40 seconds of processor time, on nothing."""
    for number in (10**6, 10**12, 10**30):
        config: dict[str, object] = {"num_hidden_layers": number}
        for name in reversed(part):
            config = {name: config}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(RepositoryError, match=f"says {number} layers") as raised:
            check_layers(local.resolve("m", tmp_path))
        assert raised.value.kind == "too-costly"


NUMBERS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=True), st.text(max_size=8)
)
VALUES = st.one_of(
    NUMBERS, st.lists(NUMBERS, max_size=5), st.dictionaries(st.text(max_size=12), NUMBERS, max_size=3)
)
NAMES = sorted({key for toy in TOYS.values() for key in toy})


@given(st.sampled_from(sorted(TOYS)), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6))
def test_any_value_under_any_key_gives_a_shape_or_a_reason(toy: str, changed: dict[str, Any]) -> None:
    """And what is described can be estimated, in bounded time and without an error."""
    found = describe(json.loads(json.dumps(TOYS[toy])) | changed)
    if isinstance(found, Unknown):
        assert render(found.reason)
        return
    weights = Weights(Amount.exactly(10**9), None, "files", "listed")
    for backend in ("vllm", "mlx"):
        total = estimate(found, weights, Load(4096, tensor_parallel=2), backend).total
        assert 0 <= total.low <= total.likely <= total.high


def test_pages_of_layers_with_different_keys_are_brought_to_one_size() -> None:
    """Twice as many tokens in a block of the layers whose tokens are half as large."""
    found = describe(TOYS["window: heads of another number and width"])
    assert isinstance(found, Shape)
    pool = pages.pool(found, Load(4096, device="cpu"))
    assert {(g.pages[0].kind, g.pages[0].tokens) for g in pool.groups} == {("full", 256), ("window", 128)}
    assert len({g.size for g in pool.groups}) == 1


def test_mla_is_not_split_over_devices_and_few_heads_are_copied() -> None:
    found = describe(TOYS["latent: MLA with experts"])
    assert isinstance(found, Shape)
    assert isinstance(first(found), Latent)
    one, eight = (pages.pool(found, Load(4096, tensor_parallel=n)).block for n in (1, 8))
    assert one == eight
    grouped = describe(TOYS["full: grouped heads"])
    assert isinstance(grouped, Shape)
    sizes = [pages.pool(grouped, Load(4096, tensor_parallel=n)).block for n in (1, 2, 4, 8)]
    assert sizes == [sizes[0], sizes[0] // 2, sizes[0] // 2, sizes[0] // 2]


def test_a_state_can_be_dealt_out_or_copied() -> None:
    found = describe(TOYS["mamba2: nothing else"])
    assert isinstance(found, Shape)
    kept = first(found)
    assert isinstance(kept, State)
    assert [kept.divides(n) for n in (1, 2, 3, 16)] == [True, True, False, True]
