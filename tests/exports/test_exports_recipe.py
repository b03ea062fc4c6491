"""A document as a recipe: the command that follows from the recipe is the document's."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
import yaml

from importer.document import schema
from importer.document.receipt import Receipt
from importer.exports import FORMATS
from importer.exports.base import Exported, Options
from importer.exports.kinds import Loss
from importer.exports.vllm_recipe import node_of, nodes, precision
from tests.exporting import COMMIT, VLLM
from tests.exports.test_exports import RECEIPT
from tests.recipe_site import command as of_site
from tests.recipe_site import flagged

OF_SITE = {
    "--nnodes", "--node-rank", "--master-addr", "--data-parallel-size-local", "--data-parallel-address",
    "--data-parallel-hybrid-lb",
}  # fmt: skip
OURS = {"--host", "--port", "--served-model-name", "--revision", "--tokenizer-revision", "--code-revision"}


def fitted(name: str, count: int, **weights: Any) -> Receipt:
    """Return a receipt of a fit on so many cards."""
    fit = {
        "device": {"name": name, "count": count, "kind": "cuda"},
        "wanted": 40960,
        "chosen": {"gpu_memory_utilization": 0.85, "engine_args.kv_cache_dtype": "fp8"},
        "weights": {"likely": 16_381_470_720, "parameters": 8_190_735_360, **weights},
    }
    return replace(RECEIPT, fit=fit, imported_at="2026-11-22T10:00:00Z")


def made(document: dict[str, Any], receipt: Receipt | None = None) -> tuple[dict[str, Any], Exported]:
    """Return a document's recipe as data, valid to the schema, and its export."""
    exported = FORMATS["vllm-recipe"].export(document, receipt, Options())
    assert isinstance(exported, Exported)
    assert [*exported.files] == ["models/acme/Tiny-8B.yaml"]
    recipe = yaml.safe_load(exported.files["models/acme/Tiny-8B.yaml"])
    schema.check("vllm-recipe", recipe, "recipe")
    return recipe, exported


EXPERTS = {"enable_expert_parallel": True}
SIZES: list[tuple[str, dict[str, Any]]] = [
    ("single_node_tp", {}),
    ("single_node_tp", {"tensor_parallel_size": 2}),
    ("single_node_tp", {"engine_args": {"data_parallel_size": 4}}),
    ("single_node_tep", {"tensor_parallel_size": 4, "engine_args": EXPERTS}),
    ("single_node_tep", {"tensor_parallel_size": 8, "engine_args": EXPERTS}),
    ("single_node_dep", {"engine_args": EXPERTS | {"data_parallel_size": 8}}),
    ("single_node_dep", {"tensor_parallel_size": 2, "engine_args": EXPERTS | {"data_parallel_size": 4}}),
    ("multi_node_tp", {"tensor_parallel_size": 16}),
    ("multi_node_tep", {"tensor_parallel_size": 32, "engine_args": EXPERTS}),
    ("multi_node_dep", {"engine_args": EXPERTS | {"data_parallel_size": 16}}),
    ("multi_node_dep", {"tensor_parallel_size": 2, "engine_args": EXPERTS | {"data_parallel_size": 16}}),
    ("multi_node_dep", {"engine_args": EXPERTS | {"data_parallel_size": 16, "data_parallel_size_local": 8}}),
    (
        "multi_node_dep",
        {
            "tensor_parallel_size": 2,
            "engine_args": EXPERTS | {"data_parallel_size": 8, "data_parallel_size_local": 4},
        },
    ),
    ("multi_node_tp_pp", {"tensor_parallel_size": 8, "engine_args": {"pipeline_parallel_size": 3}}),
    ("multi_node_tp_pp", {"tensor_parallel_size": 4, "engine_args": EXPERTS | {"pipeline_parallel_size": 2}}),
]


def values(flags: dict[str, str | None], without: Collection[str]) -> dict[str, Any]:
    """Return the value of each flag, objects as data, but for these flags."""
    found = {name: True if text is None else yaml.safe_load(text) for name, text in flags.items()}
    return {name: value for name, value in found.items() if name not in without}


@pytest.mark.parametrize(("strategy", "sizes"), SIZES)
def test_the_command_of_the_recipe_is_that_of_the_document(strategy: str, sizes: dict[str, Any]) -> None:
    engine_args = VLLM["engine_args"] | sizes.get("engine_args", {})
    document = {k: v for k, v in VLLM.items() if k != "tensor_parallel_size"}
    document |= sizes | {"engine_args": engine_args}
    receipt = fitted("h200", 8)
    recipe, _ = made(document, receipt)
    assert recipe["compatible_strategies"] == [recipe["default_strategy"]] == [strategy]
    official = of_site(recipe, "h200", 8)
    command = FORMATS["vllm-command"].export(document, receipt, Options())
    assert isinstance(command, Exported)
    line = next(iter(command.files.values())).replace("\\\n", "").splitlines()[-1]
    exported = values(flagged(shlex.split(line)), without=OURS)
    one_card = {"--tensor-parallel-size": 1}
    assert one_card | exported == one_card | values(official, without=OF_SITE - {*exported})


def test_a_recipe_has_the_facts_of_the_receipt() -> None:
    recipe, exported = made(VLLM, fitted("h200", 8, active=3_000_000_000, parameters=1_600_000_000_000))
    model, meta, variant = recipe["model"], recipe["meta"], recipe["variants"]["default"]
    assert (model["architecture"], model["parameter_count"], model["active_parameters"]) == (
        "moe",
        "1.6T",
        "3B",
    )
    assert (model["context_length"], model["min_vllm_version"]) == (40960, "0.32.0")
    assert (meta["default_hardware"], meta["date_added"], meta["tasks"]) == (
        "h200",
        "2026-11-22",
        ["multimodal"],
    )
    assert variant["vram_minimum_gb"] == 20
    assert variant["hardware_overrides"]["h200"]["extra_args"] == [
        "--gpu-memory-utilization", "0.85", "--kv-cache-dtype", "fp8",
    ]  # fmt: skip
    assert [loss.kind for loss in exported.lost] == [Loss.SERVED_NAME, Loss.NO_PIN]
    assert exported.lost[1].fields["revision"] == COMMIT


def test_flags_for_a_device_that_no_recipe_has_are_those_of_the_model() -> None:
    recipe, _ = made(VLLM, fitted("m3-max-64g", 1))
    assert "hardware_overrides" not in recipe["variants"]["default"]
    assert "default_hardware" not in recipe["meta"]
    assert "--gpu-memory-utilization" in recipe["model"]["base_args"]
    assert made(VLLM)[0]["model"]["architecture"] == "dense"


@pytest.mark.parametrize(
    ("scheme", "dtype", "name"),
    [
        ("nvfp4", "bfloat16", "nvfp4"), ("fp8-block", "bfloat16", "fp8"), ("w4a16", None, "int4"),
        ("w8a8", None, "int8"), (None, "float16", "fp16"), (None, None, "bf16"), ("odd", "auto", "bf16"),
    ],
)  # fmt: skip
def test_a_precision_is_in_the_words_of_the_recipes(scheme: str | None, dtype: str | None, name: str) -> None:
    assert precision({"dtype": dtype, "importer": {"quantization_scheme": scheme}}) == name


def test_a_node_is_the_smallest_with_as_many_cards() -> None:
    assert {node.name for node in nodes()} >= {"h200", "b200", "mi300x", "rtx_5090", "rtx_5090_2x"}
    assert [node_of({"name": "rtx5090", "count": n}).name for n in (1, 2, 9)] == [
        "rtx_5090", "rtx_5090_2x", "rtx_5090_2x",
    ]  # fmt: skip
    assert node_of({"name": "rtx4090", "count": 1}) is None  # there is rtx_4090_2x alone
    assert node_of({"name": "h200", "count": 1}).name == "h200"
    assert node_of({"name": "cpu", "count": 1}) is None
