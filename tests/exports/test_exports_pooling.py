"""Exports of a document for embeddings: its flags and its use reach every consumer."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.exporting import VLLM, text

EMBEDDER: dict[str, Any] = {
    **{k: VLLM[k] for k in ("name", "description", "backend", "artifacts", "max_model_len", "dtype")},
    "known_usecases": ["embeddings"],
    "embeddings": True,
    "parameters": {"model": VLLM["parameters"]["model"]},
    "engine_args": {"runner": "pooling", "convert": "embed"},
    "importer": {**VLLM["importer"], "kind": "embedding", "outputs": {"dimensions": 64}},
}


@pytest.mark.parametrize("name", ["vllm-command", "compose", "kserve"])
def test_the_flags_of_the_task_are_written(name: str) -> None:
    written = text(name, EMBEDDER)
    assert "--runner=pooling" in written
    assert "--convert=embed" in written
    assert "no option for" not in written


def test_a_gallery_entry_has_the_use_and_the_key_of_embeddings() -> None:
    (item,) = yaml.safe_load(text("localai-gallery", EMBEDDER))
    assert item["overrides"] == {"known_usecases": ["embeddings"]}
    config = item["config_file"]
    assert (config["embeddings"], config["engine_args"]["runner"]) == (True, "pooling")
    assert "llm" not in item["tags"]
    assert "template" not in config
