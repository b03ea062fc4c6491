"""The demo model on vLLM: decided by proof, and every probe passes, as on mlx-lm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.engines.environment import Installed

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("vllm")]


def test_the_demo_model_passes_on_vllm(
    vllm_engine: Installed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert vllm_engine.version
    arguments = [
        str(MODEL),
        "--backend",
        "vllm",
        "--name",
        "demo",
        "--output",
        str(tmp_path),
        "--yes",
        "--validate",
    ]
    code = run([*arguments, "--json"])
    shown = capfd.readouterr()
    assert code == 0, shown.err
    decisions = json.loads(shown.out)["decisions"]
    assert (decisions["tool_parser"]["value"], decisions["tool_parser"]["status"]) == ("hermes", "proved")
    assert decisions["reasoning_parser"]["status"] == "proved"
    receipt = json.loads((tmp_path / "demo.receipt.json").read_text())
    outcomes = {o["probe"]: o["outcome"] for o in receipt["validation"]["outcomes"]}
    assert set(outcomes.values()) == {"pass", "not-applicable"}
    assert [p for p, o in outcomes.items() if o == "not-applicable"] == ["plain-completion"]
    assert receipt["validation"]["digest"] == receipt["digest"]
    assert receipt["fit"]["verdict"] == "fits"
    cache = receipt["validation"]["fit"]["kv_cache_tokens"]
    assert cache["reported"] > 2048
    assert abs(cache["error"]) < 0.02, "the server got the space it was promised, and filled it as predicted"
