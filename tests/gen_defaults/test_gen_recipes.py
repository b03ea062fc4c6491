"""The facts of vLLM's recipes, and the commands that follow from them."""

from __future__ import annotations

import json
from typing import cast

import pytest

from gen_defaults.__main__ import main
from gen_defaults.place import write
from gen_defaults.recipe_book import Book
from gen_defaults.recipe_commands import deployments, flagged, recommended
from gen_defaults.sources import vllm_recipes
from gen_defaults.sources.request import SourceRequest
from importer.wheels.archive import LARGEST
from importer.wheels.index import Index
from tests.gen_releases import DOCS, checkout
from tests.package_index import sdist
from tests.tiers import one_of_each

pytestmark = pytest.mark.slow  # the makers of tables

TAXONOMY = """
hardware_profiles:
  big: {brand: NVIDIA, generation: hopper, gpu_count: 8, vram_gb: 640, description: words}
  red: {brand: AMD, generation: amd, gpu_count: 8, vram_gb: 1536}
  desk: {brand: NVIDIA, generation: blackwell, gpu_count: 1, vram_gb: 96, restricted: true, scalable: false}
"""
STRATEGIES = {
    "single_node_tp": "deploy_type: single_node\nparallel_flag: --tensor-parallel-size\ndescription: words\n",
    "single_node_dep": (
        "deploy_type: single_node\nparallel_flag: --data-parallel-size\n"
        "vllm_args: [--enable-expert-parallel]\n"
    ),
    "multi_node_tp": "deploy_type: multi_node\nparallel_flag: --tensor-parallel-size\nenv: {IFACE: $NAME}\n",
    "multi_node_tp_pp": "deploy_type: multi_node\nparallelism: tp_pp\n",
    "pd_cluster": "deploy_type: pd_cluster\nprefill: {vllm_args: [--port, '8001']}\n",
}
RECIPE = """
meta:
  {title: Zeta, description: words, tasks: [text], hardware: {big: verified, red: verified, lost: verified}}
model:
  model_id: zeta/Zeta-1
  min_vllm_version: "0.30.0"
  architecture: moe
  context_length: 4096
  install: {pip: {note: a sentence}}
  base_args: [--trust-remote-code, --max_model_len, "1024", "-cc.mode=3"]
  base_env: {VLLM_A: 1}
features:
  tools: {description: words, args: [--enable-auto-tool-choice, --tool-call-parser, gamma]}
  spec:
    default_mode: mtp
    modes:
      mtp: {label: MTP, args: [--speculative-config, '{"method":"mtp"}'], variants: [default]}
      draft: {args: [--speculative-config.method, eagle3], hardware: {amd: unsupported}}
opt_in_features: [spec]
variants:
  default: {precision: bf16, vram_minimum_gb: 600, label: words}
  small:
    {model_id: zeta/Zeta-1-FP4, precision: nvfp4, vram_minimum_gb: 60, extra_args: [--max-model-len, "2048"]}
compatible_strategies: [single_node_tp, single_node_dep, multi_node_tp, multi_node_tp_pp, pd_cluster]
hardware_overrides:
  amd: {extra_args: [--block-size, "1"], extra_env: {VLLM_A: "2"}}
  nvidia: {extra_args: [--async-scheduling]}
strategy_overrides:
  single_node_dep:
    hardware_overrides: {hopper: {extra_args: [--max-num-seqs, "8"]}, big: {extra_args: [-tp, "1"]}}
guide: a long text
"""


@pytest.fixture
def place(tmp_path):
    """Return a checkout of importer without tables."""
    return checkout(tmp_path / "checkout")


@pytest.fixture
def folder(tmp_path):
    """Return a checkout of recipes with a commit."""
    files = {"taxonomy.yaml": TAXONOMY, "models/zeta/Zeta-1.yaml": RECIPE}
    files |= {f"strategies/{name}.yaml": text for name, text in STRATEGIES.items()}
    files |= {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "a" * 40 + "\n"}
    for name, text in files.items():
        path = tmp_path / "recipes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "recipes"


@pytest.fixture
def book(folder, place):
    """Return the book of the checkout."""
    read(place, folder)
    return Book.shipped(place)


def read(place, folder=None):
    """Write the facts of a checkout, else of the newest sdist."""
    index = (
        Index() if folder is None else cast(Index, None)
    )  # a folder needs no index, whose start takes a second
    write(vllm_recipes.read(SourceRequest(index, place, recipes=folder)).files)


def of(book, strategy=None, model="zeta/Zeta-1", **options):
    """Return the deployments of a model by hardware and role."""
    found = deployments(book, {model}, every=strategy is not None, **options)
    return {(d.profile.name, d.role): d for d in found if strategy in {None, d.strategy}}


def test_a_checkout_gives_facts_with_its_commit_and_no_sentence(book, place):
    text = place.upstream("vllm-recipes").read_text()
    data = json.loads(text)
    assert data["source"]["commit"] == "a" * 40 == data["vocabulary"]["commit"]
    assert data["hardware"]["desk"] == {
        "brand": "NVIDIA", "generation": "blackwell", "gpu_count": 1, "vram_gb": 96, "scalable": False,
        "restricted": True,
    }  # fmt: skip
    assert data["recipes"]["zeta/Zeta-1"]["model"]["min_vllm_version"] == "0.30.0"
    assert not [word for word in ("sentence", "words", "long text", "Zeta,") if word in text]


def test_an_sdist_brings_new_recipes_and_keeps_the_hardware(book, place, package_index):
    recipe = RECIPE.replace("zeta/Zeta-1", "zeta/Zeta-2")
    files = DOCS | {"recipes/models/zeta/Zeta-2.yaml": recipe}
    package_index.add("vllm", "vllm-1.0.tar.gz", sdist("vllm", "1.0", files))
    read(place)
    newer = Book.shipped(place)
    assert {*newer.recipes} == {"zeta/Zeta-1", "zeta/Zeta-2"}
    assert newer.profiles == book.profiles
    assert json.loads(place.upstream("vllm-recipes").read_text())["source"]["version"] == "1.0"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--only", "vllm-recipes", "--recipes", "nowhere"], 2, "there is no folder nowhere"),
        (["--recipes", "."], 2, "add --only vllm-recipes"),
    ],
)
def test_a_folder_has_to_be_there_and_asked_for(arguments, status, words, place, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments, place)
    assert (stopped.value.code, words in capsys.readouterr().err) == (status, True)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    one_of_each(
        [
            ("models/zeta/Zeta-1.yaml", "a: [", "Zeta-1.yaml cannot be read"),
            ("taxonomy.yaml", "tasks: []", "taxonomy.yaml has no hardware_profiles"),
            ("taxonomy.yaml", "x" * (LARGEST + 1), "is larger than 16 MiB"),
        ],
        tier="slow",
    ),
)
def test_a_checkout_that_cannot_be_read_changes_nothing(folder, place, capsys, name, text, words):
    (folder / name).write_text(text)
    assert main(["--only", "vllm-recipes", "--recipes", str(folder)], place) == 1
    assert words in capsys.readouterr().err
    assert not place.upstream("vllm-recipes").exists()


def test_a_folder_without_recipes_is_none(tmp_path, place, capsys):
    assert main(["--only", "vllm-recipes", "--recipes", str(tmp_path)], place) == 1
    assert "has no recipes under models/" in capsys.readouterr().err


def test_a_command_has_the_parts_in_their_order(book):
    found = of(book)
    assert found.keys() == {("big", ""), ("red", "")}  # no profile is known for the third
    assert dict(found["big", ""].flags) == {
        "--trust-remote-code": None, "--max-model-len": "1024", "--compilation-config.mode": "3",
        "--tensor-parallel-size": "8", "--async-scheduling": None, "--enable-auto-tool-choice": None,
        "--tool-call-parser": "gamma",
    }  # fmt: skip
    assert found["red", ""].env == {"VLLM_A": "2"}
    assert dict(found["red", ""].flags)["--block-size"] == "1"


def test_a_variant_runs_where_its_precision_does(book):
    desk = {"recipes": {"zeta/Zeta-1": {**book.recipes["zeta/Zeta-1"]}}}
    meta = {"hardware": {"desk": "verified", "big": "verified"}}
    desk["recipes"]["zeta/Zeta-1"]["meta"] = meta
    found = of(Book(desk["recipes"], book.profiles, book.strategies), model="zeta/Zeta-1-FP4")
    assert [*found] == [("desk", "")]
    flags = dict(found["desk", ""].flags)
    assert (flags["--tensor-parallel-size"], flags["--max-model-len"]) == ("1", "2048")


def test_a_strategy_replaces_the_hardware_part(book):
    flags = dict(of(book, "single_node_dep")["big", ""].flags)
    assert (flags["--data-parallel-size"], flags["--max-num-seqs"]) == ("8", "8")
    assert flags["--tensor-parallel-size"] == "1"
    assert "--async-scheduling" not in flags


def test_several_nodes_have_a_head_and_workers(book):
    found = of(book, "multi_node_tp_pp")
    worker = dict(found["big", "worker"].flags)
    assert (worker["--tensor-parallel-size"], worker["--pipeline-parallel-size"]) == ("8", "2")
    assert (worker["--node-rank"], worker["--headless"]) == ("1", None)
    assert "--headless" not in dict(found["big", "head"].flags)
    assert dict(of(book, "multi_node_tp")["big", "head"].flags)["--tensor-parallel-size"] == "16"
    assert dict(of(book, "pd_cluster")["big", "prefill"].flags)["--port"] == "8001"


def test_more_memory_than_a_node_has_needs_several(book):
    recipe = book.recipes["zeta/Zeta-1"]
    assert recommended(recipe, {"vram_minimum_gb": 700}, book.profiles["big"]) == "multi_node_tp"
    assert recommended(recipe, {"vram_minimum_gb": 600}, book.profiles["big"]) == "single_node_tp"


def test_a_feature_that_is_opted_in_has_the_method_of_its_variant(book):
    assert "--speculative-config" not in dict(of(book)["big", ""].flags)
    assert dict(of(book, features=True)["big", ""].flags)["--speculative-config"] == '{"method":"mtp"}'
    other = {
        **book.recipes["zeta/Zeta-1"],
        "features": {"spec": {"modes": {"draft": {"hardware": {"amd": "unsupported"}, "args": ["--a"]}}}},
    }
    found = of(Book({"zeta/Zeta-1": other}, book.profiles, book.strategies), features=True)
    assert "--a" in dict(found["big", ""].flags)
    assert "--a" not in dict(found["red", ""].flags)


def test_flags_have_one_spelling_and_the_last_one_counts():
    words = [
        *["--config_format", "hf", "--a=1", "--a", "2", "-tp", "4"],
        "--max-model-len auto",
        *["--x", "-1", "--y", "b", "c"],
    ]
    assert dict(flagged(words)) == {
        "--config-format": "hf", "--a": "2", "--tensor-parallel-size": "4", "--max-model-len": "auto",
        "--x": "-1", "--y": "b c",
    }  # fmt: skip


def test_the_shipped_book_has_every_part():
    book = Book.shipped()
    assert len(book.recipes) > 180
    assert {"h200", "mi300x", "xeon6"} <= book.profiles.keys()
    models = {model for *_, model in book.variants()}
    found = [*deployments(book, models)]
    assert len(found) > 1000
    assert all(d.flags for d in found)
