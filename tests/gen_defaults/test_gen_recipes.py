"""The kinds of nodes of vLLM's recipes, read from a checkout."""

from __future__ import annotations

import json
from typing import cast

import pytest

from gen_defaults.__main__ import main
from gen_defaults.released import Index
from gen_defaults.sources import vllm_recipes
from gen_defaults.sources.request import SourceRequest
from importer.exports.vllm_recipe import FILE
from importer.wheels.archive import LARGEST
from tests.gen_releases import checkout

pytestmark = pytest.mark.slow  # the makers of tables

TAXONOMY = """
hardware_profiles:
  big: {brand: NVIDIA, generation: hopper, gpu_count: 8, vram_gb: 640, description: words}
  desk: {brand: NVIDIA, generation: blackwell, vram_gb: 96}
"""


@pytest.fixture
def place(tmp_path):
    """Return a checkout of importer without tables."""
    return checkout(tmp_path / "checkout")


@pytest.fixture
def folder(tmp_path):
    """Return a checkout of recipes with a commit."""
    files = {"taxonomy.yaml": TAXONOMY, ".git/HEAD": "ref: refs/heads/main\n"}
    files |= {".git/refs/heads/main": "a" * 40 + "\n"}
    for name, text in files.items():
        path = tmp_path / "recipes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "recipes"


def test_a_checkout_gives_the_cards_of_each_node_with_its_commit(folder, place):
    request = SourceRequest(cast(Index, None), place, recipes=folder)  # no index is asked
    files = vllm_recipes.read(request).files
    data = json.loads(files[place.root / "importer" / "data" / FILE])
    assert data["source"] == {"repository": "vllm-project/recipes", "commit": "a" * 40}
    assert data["hardware"] == {"big": {"cards": 8}, "desk": {"cards": 1}}


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
    ("text", "words"),
    [
        (None, "taxonomy.yaml cannot be read"),
        ("a: [", "taxonomy.yaml cannot be read"),
        ("tasks: []", "taxonomy.yaml has no hardware_profiles"),
        ("x" * (LARGEST + 1), "is larger than 16 MiB"),
    ],
)
def test_a_checkout_that_cannot_be_read_changes_nothing(folder, place, capsys, text, words):
    path = folder / "taxonomy.yaml"
    path.unlink() if text is None else path.write_text(text)
    assert main(["--only", "vllm-recipes", "--recipes", str(folder)], place) == 1
    assert words in capsys.readouterr().err
    assert not (place.root / "importer" / "data" / FILE).exists()


def test_a_checkout_is_required(place, capsys):
    assert main(["--only", "vllm-recipes"], place) == 1
    assert "add --recipes with a checkout" in capsys.readouterr().err
