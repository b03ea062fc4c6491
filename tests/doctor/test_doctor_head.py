"""An output layer that config.json speaks of is among the weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from importer.demo import MODEL
from importer.engines.doctor import model
from importer.engines.doctor.case import DoctorCase, Trouble
from importer.engines.doctor.kinds import DoctorReason
from importer.reasons import Reason
from importer.sentences import render

EMBEDDING = {"model.embed_tokens.weight": [1000, 64], "model.layers.0.mlp.up_proj.weight": [256, 64]}


def folder(tmp_path: Path, config: object, *shards: dict[str, list[int]]) -> DoctorCase:
    (tmp_path / "config.json").write_text(json.dumps(config))
    for number, shapes in enumerate(shards):
        header, at = {}, 0
        for name, shape in shapes.items():
            size = 2 * shape[0] * (shape[1] if shape[1:] else 1)
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at := at + size]}
        told = json.dumps(header).encode()
        data = struct.pack("<Q", len(told)) + told + bytes(at)
        (tmp_path / f"model-{number}.safetensors").write_bytes(data)
    return DoctorCase(weights=tmp_path)


@pytest.mark.parametrize("config", [{}, {"text_config": {"tie_word_embeddings": False, "vocab_size": 1000}}])
def test_one_that_is_not_there_is_told_before_the_start(tmp_path: Path, config: object) -> None:
    told = config or {"tie_word_embeddings": False, "vocab_size": 1000}
    found = model.headless(folder(tmp_path, told, EMBEDDING, {"model.norm.weight": [1000]}))
    assert isinstance(found, Trouble)
    assert found.stops
    assert found.part == "configuration"
    assert found.reason == Reason(
        DoctorReason.HEAD_LACKING, key="tie_word_embeddings", tensor="model.embed_tokens"
    )
    assert '"tie_word_embeddings": true' in render(found.remedy)


@pytest.mark.parametrize(
    "other", [{"lm_head.weight": [1024, 64]}, {"output.scales": [16, 1000]}, {"embed_out.weight": [1000, 8]}]
)
def test_under_whatever_name_and_however_packed(tmp_path: Path, other: dict[str, list[int]]) -> None:
    case = folder(tmp_path, {"tie_word_embeddings": False, "vocab_size": 1000}, EMBEDDING, other)
    assert model.headless(case) is None


@pytest.mark.parametrize("told", [{"tie_word_embeddings": True}, {}, {"tie_word_embeddings": False}])
def test_where_nothing_is_said_nothing_is_looked_for(tmp_path: Path, told: dict[str, object]) -> None:
    sizes = {} if told.get("tie_word_embeddings") is False else {"vocab_size": 1000}
    assert model.headless(folder(tmp_path, told | sizes, EMBEDDING)) is None


def test_files_that_hold_no_such_tensor_or_are_broken_say_nothing(tmp_path: Path) -> None:
    told = {"tie_word_embeddings": False, "vocab_size": 5000}
    case = folder(tmp_path, told, EMBEDDING)
    assert model.headless(case) is None
    assert model.headless(DoctorCase(weights=MODEL)) is None
    (tmp_path / "model-0.safetensors").write_bytes(b"\xff" * 64)
    assert model.headless(case) is None
    assert model.headless(DoctorCase()) is None
