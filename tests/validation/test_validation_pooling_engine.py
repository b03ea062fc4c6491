"""Documents of models that pool, imported and validated on vLLM: one of each kind, with random weights."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from importer.engines.install import Installed
from tests import pooling_models

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("vllm")]

LABELS = {"id2label": {"0": "a", "1": "b", "2": "c"}}
MODELS: dict[str, Callable[[Path], Path]] = {
    "embedding": lambda f: pooling_models.as_sentence_encoder(pooling_models.decoder(f)),
    "classifier": lambda f: pooling_models.encoder(f, **LABELS),
    "encoder": pooling_models.encoder,
    "reranker": lambda f: pooling_models.encoder(f, id2label={"0": "LABEL_0"}),
}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", MODELS)
def test_a_model_that_pools_is_validated(vllm_engine: Installed, tmp_path: Path, kind: str) -> None:
    """The server lists the model, has the document's context, and answers the probe of the kind."""
    model = MODELS[kind](tmp_path / "model")
    words = [sys.executable, "-m", "importer", str(model), "--dir", str(tmp_path), "--name", "it"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (tmp_path / "it.receipt.json").is_file(), done.stderr
    receipt = json.loads((tmp_path / "it.receipt.json").read_text("utf-8"))
    rows = {r["probe"]: r["outcome"] for r in receipt["validation"]["outcomes"]}
    asked = {name for name, outcome in rows.items() if outcome != "not-applicable"}
    assert {"health", "model-listed", "task-output", "stops-cleanly"} <= asked
    wrong = {name for name, outcome in rows.items() if outcome in {"fail", "inconclusive"}}
    assert wrong <= ({"task-output"} if kind == "reranker" else set())  # random weights rank at random
