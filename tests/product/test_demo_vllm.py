"""The demo model on vLLM: decided by proof, and every probe passes, as on mlx-lm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.engines.install import Installed

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("vllm")]


def test_the_demo_model_passes_on_vllm(
    vllm_engine: Installed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert vllm_engine.version
    words = ["--backend", "vllm", "--name", "demo", "--dir", str(tmp_path), "--yes", "--validate", "--json"]
    code = run([str(MODEL), *words])
    shown = capfd.readouterr()
    receipt = json.loads((tmp_path / "demo.receipt.json").read_text())
    failed = [o for o in receipt["validation"]["outcomes"] if o["outcome"] not in ("pass", "not-applicable")]
    assert (code, failed) == (0, []), shown.err
    decisions = json.loads(shown.out)["decisions"]
    assert (decisions["tool_parser"]["value"], decisions["tool_parser"]["status"]) == ("qwen3_json", "proved")
    assert decisions["reasoning_parser"]["status"] == "proved"
    outcomes = {o["probe"]: o["outcome"] for o in receipt["validation"]["outcomes"]}
    idle = ["task-output"]
    assert [p for p, o in outcomes.items() if o == "not-applicable"] == idle
    assert receipt["validation"]["digest"] == receipt["digest"]
    assert receipt["fit"]["verdict"] == "neutral"
    settings = receipt["validation"]["run"]["settings"]
    assert "kv_cache_memory_bytes" in str(settings), "of this machine, for the run"
    cache = receipt["validation"]["fit"]["kv_cache_tokens"]
    assert cache["reported"] > 2048
    assert abs(cache["error"]) < 0.02, "the server got the space it was promised, and filled it as predicted"


@pytest.mark.nightly
def test_a_context_that_was_shortened_is_one_that_starts(
    vllm_engine: Installed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """vLLM refuses a context that is one block too long for its cache; ours is the longest, and it serves."""
    assert vllm_engine.version
    shutil.copytree(MODEL, tmp_path / "long")
    config = json.loads((tmp_path / "long" / "config.json").read_text())
    config["max_position_embeddings"] = 4_000_000
    (tmp_path / "long" / "config.json").write_text(json.dumps(config))
    code = run([
        str(tmp_path / "long"), "--backend", "vllm", "--device", "cpu", "--memory", "3GiB", "--yes",
        "--validate", "--dir", str(tmp_path),
    ])  # fmt: skip
    assert code == 0, capfd.readouterr().err
    receipt = json.loads((tmp_path / "long.receipt.json").read_text())
    chosen = receipt["fit"]["chosen"]
    assert receipt["fit"]["verdict"] == "shortened"
    assert 200_000 < chosen["max_model_len"] < 4_000_000
    cache = receipt["validation"]["fit"]["kv_cache_tokens"]
    assert cache["reported"] >= chosen["max_model_len"]
    assert abs(cache["error"]) < 0.02
