"""The small models of each wire format: made by their recipes, and read by the parsers they are made for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from importer.engines.install import Installed
from tests.commandline import Desk, desk
from tests.models import harmed
from tests.models.formats import FORMATS
from tests.tiers import one_of_each
from tools.demo_model.recipe import file_digests

__all__ = ["desk"]
# What each is made for, on vLLM and on mlx-lm; None where the engine has no parser for the format.
PARSERS = {
    "hermes": ("qwen3_json", "json_tools"),
    "qwen3coder": ("qwen3_coder", "qwen3_coder"),
    "llama3": ("llama3_json", None),
    "mistral": ("mistral", "mistral"),
    "glm": ("glm47", "glm47"),
    "deepseek": ("deepseek_v3", None),
}


@pytest.mark.parametrize("name", one_of_each(FORMATS, tier="slow"))
def test_the_files_are_those_of_the_recipe(name: str) -> None:
    recipe = FORMATS[name]
    record = json.loads((recipe.folder / "training.json").read_text())
    assert record["recipe"] == recipe.digest()
    assert record["files"] == file_digests(recipe.folder)
    assert record["held_out_exact"] > 0.85


def chosen(desk: Desk, backend: str) -> dict[str, str | None]:
    (desk.folder / "list").write_text("\n".join(str(r.folder) for r in FORMATS.values()))
    ran = desk("--from", "list", "--backend", backend, "--ignore-name", "--dry-run", "--json")
    found = {}
    for name, line in zip(FORMATS, map(json.loads, ran.out.splitlines()), strict=True):
        decision = line["decisions"]["tool_parser"]
        assert decision["status"] == ("proved" if decision["value"] else "unknown")
        found[name] = decision["value"]
    return found


@pytest.mark.engine
def test_the_parser_each_is_made_for_is_proved(
    desk: Desk, mlx_engine: Installed, vllm_engine: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine, installed in (("MLX", mlx_engine), ("VLLM_CPU", vllm_engine)):
        monkeypatch.setenv(f"IMPORTER_{engine}_PYTHON", str(installed.python))
    on_vllm, on_mlx = chosen(desk, "vllm"), chosen(desk, "mlx")
    assert {name: (on_vllm[name], on_mlx[name]) for name in FORMATS} == PARSERS


def test_none_is_large() -> None:
    for recipe in FORMATS.values():
        assert sum(path.stat().st_size for path in Path(recipe.folder).iterdir()) < 600_000


@pytest.mark.slow
def test_harmed_models_are_those_of_their_recipes() -> None:
    record = json.loads(harmed.RECORD.read_text())
    assert set(record) == set(harmed.TWISTS)
    for name, told in record.items():
        assert told["recipe"] == harmed.recipe(name)
        assert told["weights"] == hashlib.sha256(harmed.weights(name).read_bytes()).hexdigest()
