"""Deaths planted on the engines that start fastest: each is explained, and blamed on the part at fault.

Every run explains their recorded logs and has one death; the nightly run has them all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get, logs
from importer.engines.ports import free_port, is_free
from importer.engines.process import serve
from importer.errors import EngineError
from importer.sentences import render
from tests.recordings import DEATHS, RECORDINGS
from tests.tiers import one_of_each

Plant = Callable[[Path], object]


def settings(name: str, **changes: Any) -> Plant:
    def plant(model: Path) -> None:
        held = json.loads((model / name).read_text()) | changes
        kept = {key: value for key, value in held.items() if value is not None}
        (model / name).write_text(json.dumps(kept))

    return plant


def lost(*names: str) -> Plant:
    return lambda model: [(model / name).unlink() for name in names]


def cut(name: str, size: int = 80) -> Plant:
    return lambda model: (model / name).write_bytes((model / name).read_bytes()[:size])


TOKENIZER = "the tokenizer is missing or broken"
OLD = {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
WEIGHTS = cut("model.safetensors", 1000), [], "a weights file is broken", "environment"
UNKNOWN = settings("config.json", model_type="qwen99"), [], "qwen99 not supported", "configuration"
PLANTED: list[tuple[str, Plant, list[str], str, str]] = [
    *((engine, *row) for engine in ("mlx", "mlx-vlm", "vllm-mlx") for row in (WEIGHTS, UNKNOWN)),
    ("mlx", settings("config.json", num_hidden_layers=4), [], "do not fit", "configuration"),
    ("mlx", cut("tokenizer.json", 500), [], TOKENIZER, "environment"),
    ("mlx-vlm", cut("tokenizer.json", 500), [], "Unrecognized processing class", "environment"),
    ("vllm-mlx", cut("tokenizer.json", 500), [], "Failed to parse tokenizer.json", "environment"),
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
        "vllm-mlx", lost(), ["tool_parser:nosuch"], "invalid choice: 'nosuch'",
        "configuration",
    ),
]  # fmt: skip


NAMES = [f"{row[0]}-{number}" for number, row in enumerate(PLANTED)]
ROW = ("engine", "plant", "options", "says", "blames")


@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
@pytest.mark.parametrize(ROW, one_of_each(PLANTED), ids=NAMES)
def test_a_death_is_explained_and_blamed(
    engine: str, plant: Plant, options: list[str], says: str, blames: str, request: Any, tmp_path: Path
) -> None:
    python = request.getfixturevalue(f"{engine.replace('-', '_')}_engine").python
    shutil.copytree(MODEL, tmp_path / "model")
    plant(tmp_path / "model")
    document, port, log = {"name": "m", "options": options}, free_port(), tmp_path / "log"
    with (
        pytest.raises(EngineError) as caught,
        serve(get(engine), python, document, tmp_path / "model", port=port, log_path=log),
    ):
        pass
    RECORDINGS.died(request.node.callspec.id, log.read_text().replace(str(tmp_path), ""))
    assert is_free(port)
    assert caught.value.kind == "engine-died"
    assert says in caught.value.message
    assert logs.explain(log, get(engine).deaths).attribution == blames


@pytest.mark.parametrize(
    ("name", *ROW), [(name, *row) for name, row in zip(NAMES, PLANTED, strict=True)], ids=NAMES
)
def test_a_recorded_log_is_explained_and_blamed(
    name: str, engine: str, plant: Plant, options: list[str], says: str, blames: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(json.loads(DEATHS.read_text())[name])
    cause = logs.explain(tmp_path / "log", get(engine).deaths)
    assert says in render(cause.reason)
    assert cause.attribution == blames
