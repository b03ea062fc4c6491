"""Deaths planted on the engines that start fastest: each is explained, and blamed on the part at fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get, logs
from importer.engines.process import serve
from importer.errors import EngineError

pytestmark = pytest.mark.engine
Plant = Callable[[Path], object]


def settings(name: str, **changes: Any) -> Plant:
    def plant(model: Path) -> None:
        held = json.loads((model / name).read_text()) | changes
        kept = {key: value for key, value in held.items() if value is not None}
        (model / name).write_text(json.dumps(kept))

    return plant


def lost(*names: str) -> Plant:
    return lambda model: [(model / name).unlink() for name in names]


def cut(name: str) -> Plant:
    return lambda model: (model / name).write_bytes((model / name).read_bytes()[:80])


TOKENIZER = "the tokenizer is missing or broken"
OLD = {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
PLANTED: list[tuple[str, Plant, list[str], str, str]] = [
    ("mlx", lost("tokenizer.json", "tokenizer_config.json"), [], TOKENIZER, "environment"),
    ("mlx", lost("tokenizer.json"), [], TOKENIZER, "environment"),
    ("mlx", lost("config.json"), [], "config.json, or another file", "environment"),
    ("mlx", settings("config.json", hidden_size=96), [], "do not fit config.json (model", "configuration"),
    (
        "mlx", settings("tokenizer_config.json", tool_parser_type="nosuch"), [],
        "tokenizer_config.json names the tool parser nosuch", "configuration",
    ),
    ("mlx-vlm", settings("config.json", **OLD), [], "config.json lacks 'rope_theta'", "configuration"),
    ("mlx-vlm", cut("config.json"), [], "config.json, or another file", "environment"),
    ("vllm-mlx", settings("config.json", **OLD), [], "config.json lacks 'rope_theta'", "configuration"),
    (
        "vllm-mlx", settings("config.json", torch_dtype="float7"), [], "dtype float7 is none",
        "configuration",
    ),
    (
        "vllm-mlx", lost(), ["tool_parser:nosuch"], "no parser 'nosuch' for --tool-call-parser",
        "configuration",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "plant", "options", "says", "blames"),
    [pytest.param(*row, marks=pytest.mark.xdist_group(row[0])) for row in PLANTED],
)
def test_a_death_is_explained_and_blamed(
    name: str, plant: Plant, options: list[str], says: str, blames: str, request: Any, tmp_path: Path
) -> None:
    engine = get(name)
    python = request.getfixturevalue(f"{name.replace('-', '_')}_engine").python
    shutil.copytree(MODEL, tmp_path / "model")
    plant(tmp_path / "model")
    document = {"name": "m", "options": options}
    with (
        pytest.raises(EngineError) as caught,
        serve(engine, python, document, tmp_path / "model", log_path=tmp_path / "log"),
    ):
        pass
    assert caught.value.kind == "engine-died"
    assert says in caught.value.message
    assert logs.explain(tmp_path / "log", engine.deaths).attribution == blames
