"""Repositories in which any JSON stands at any key: of a real config, or one that some code of ours reads."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import importer
from tests.toy_shapes import TOYS

ROOT = Path(importer.__file__).parent
ROOMS = ("chat_template", "hub", "memory", "proof", "signals")
COMMIT = "0" * 40
CHATML = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
QUANTISED: tuple[Mapping[str, Any], ...] = (
    {"quant_method": "fp8", "weight_block_size": [128, 128]},
    {"quant_method": "awq", "bits": 4, "group_size": 128},
    {
        "quant_method": "compressed-tensors", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
    },
    {"group_size": 64, "bits": 4, "model.layers.0.mlp": {"bits": 8}},
    {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}},
    {"quant_method": "modelopt", "quant_algo": "MIXED", "quantized_layers": {"a": {"quant_algo": "NVFP4"}}},
)  # fmt: skip
FILES: Mapping[str, Mapping[str, Any]] = {
    "config.json": {},
    "generation_config.json": {"temperature": 0.6, "eos_token_id": [1, 2], "do_sample": True},
    "tokenizer_config.json": {
        "added_tokens_decoder": {"1": {"content": "<a>", "special": True}, "2": {"content": "<|im_end|>"}},
        "additional_special_tokens": ["<a>"], "eos_token": "<|im_end|>", "model_max_length": 4096,
        "chat_template": CHATML, "auto_map": {"AutoTokenizer": ["a.B", None]},
    },
    "added_tokens.json": {"<a>": 1},
    "special_tokens_map.json": {"eos_token": {"content": "<a>"}},
    "processor_config.json": {"auto_map": {"AutoProcessor": "a.B"}},
    "preprocessor_config.json": {"image_processor_type": "X"},
    "hf_quant_config.json": {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}},
    "params.json": {"dim": 64},
    "model.safetensors.index.json": {
        "metadata": {"total_size": 100}, "weight_map": {"model.layers.0.a": "model.safetensors"},
    },
}  # fmt: skip
HUB: Mapping[str, Any] = {
    "id": "acme/x", "sha": COMMIT, "pipeline_tag": "text-generation", "library_name": "transformers",
    "tags": ["conversational", "license:mit"], "cardData": {"license": "mit", "base_model": ["a/b"]},
    "safetensors": {"total": 100, "parameters": {"BF16": 100}}, "gated": False, "lastModified": "x",
    "config": {"model_type": "llama", "tokenizer_config": {"chat_template": CHATML}},
    "siblings": [{"rfilename": "model.safetensors", "size": 200, "lfs": {"sha256": "0" * 64}}],
}  # fmt: skip


@cache
def keys() -> tuple[str, ...]:
    """Every word in the code that reads a repository: the keys that it asks for are among them."""
    trees = (ast.parse(p.read_text(encoding="utf-8")) for room in ROOMS for p in (ROOT / room).rglob("*.py"))
    words = (n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant))
    return tuple(sorted({w for w in words if isinstance(w, str) and w.isidentifier()}))


def values() -> st.SearchStrategy[Any]:
    """Any JSON that a file of a repository may hold, and what Python reads beside it."""
    odd = st.sampled_from(
        [
            None, True, False, 0, 1, -1, 2, 64, 2**31, 2**40, 10**400, -(10**400), 10**4000, 0.5, 1.0, 1e308,
            float("nan"), float("inf"), "", "NaN", "\ud800", "\0", "²", "9" * 5000, "fp" + "9" * 5000,
            "<|im_end|>", [], {}, [True], {"a": {}},
        ]
    )  # fmt: skip
    leaves = st.one_of(
        odd, st.integers(), st.floats(), st.text(st.characters(), max_size=9), st.sampled_from(keys())
    )
    names = st.one_of(st.sampled_from(keys()), st.text(st.characters(), max_size=4))

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4))

    return st.recursive(leaves, nested, max_leaves=8)


@st.composite
def altered(draw: st.DrawFn, data: Any) -> Any:
    """The data with any JSON at one to three places, or under keys that it lacks."""
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([*places(data)]))
        here = at(data, place)
        if isinstance(here, dict) and draw(st.booleans()):
            place = (*place, draw(st.sampled_from(keys())))
        data = put(data, place, draw(values()))
    return data


def places(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value."""
    yield above
    if isinstance(data, dict | list):
        for key, inner in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(inner, (*above, key))


def at(data: Any, place: tuple[Any, ...]) -> Any:
    """The value at a place."""
    for key in place:
        data = data[key]
    return data


def put(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The data with another value at a place."""
    if not place:
        return value
    new = data.copy()
    new[place[0]] = put(data[place[0]] if len(place) > 1 else None, place[1:], value)
    return new


def plain(data: Mapping[str, Any]) -> Any:
    """The same as lists and dictionaries of its own."""
    return json.loads(json.dumps(data))


@st.composite
def repositories(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """Files by name, and the Hub's answer: one of them altered."""
    config = plain(draw(st.sampled_from([*TOYS.values()])))
    if draw(st.booleans()):
        config |= plain({"num_nextn_predict_layers": 1, "auto_map": {"AutoConfig": "a.B"}})
    if draw(st.booleans()):
        config["quantization_config"] = plain(draw(st.sampled_from(QUANTISED)))
    if draw(st.booleans()):
        sees = {"model_type": "qwen2_vl", "vision_config": {"depth": 4, "hidden_size": 64}}
        config = sees | {"text_config": config}
    files = {name: plain(data) for name, data in FILES.items() if draw(st.booleans())}
    files["config.json"] = config
    chosen = draw(st.sampled_from(["config.json", "config.json", *FILES, "hub"]))
    if chosen == "hub":
        hub = draw(altered(plain(HUB)))
        return {k: v for k, v in files.items() if k != "config.json"}, hub
    return files | {chosen: draw(altered(files.get(chosen, plain(FILES[chosen]))))}, plain(HUB)
