"""The real vllm-mlx with the model that ships: decided by proof, probed, and what it does by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import serve
from tests.commandline import whole_receipt
from tests.engines.test_engine_mlx import request
from tests.tiers import one_of_each

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("vllm-mlx")]
APART = {  # the model chats, and the server has none of the others
    "task-output", "structured-output", "tool-choice",
}  # fmt: skip


def wrong(outcomes: dict[str, Any]) -> dict[str, tuple[str, str]]:
    told = {p: (o["outcome"], o["attribution"]) for p, o in outcomes.items()}
    return {p: found for p, found in told.items() if found[0] not in ("pass", "not-applicable")}


def validated(tmp_path: Path, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    chosen = ["--backend", "vllm-mlx", "--name", "demo", "--dir", str(tmp_path), "--set", "temperature=0"]
    code = run([str(MODEL), *chosen, *words, "--yes", "--validate", "--json"])
    line = json.loads(capfd.readouterr().out)
    assert line["decisions"]["tool_parser"]["status"] == "proved"
    assert line["decisions"]["tool_parser"]["value"] == "qwen3"
    receipt = whole_receipt(tmp_path / "demo.receipt.json")
    return code, {o["probe"]: o for o in receipt["validation"]["outcomes"]}


@pytest.mark.nightly
def test_the_demo_model_is_told_which_parser_reads_a_cut_thought(
    vllm_mlx_engine: Installed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its own qwen3 leaves a thought that is cut in the content; the import chooses one that does not."""
    assert vllm_mlx_engine.version == "0.6.0"
    code, outcomes = validated(tmp_path, capfd)
    assert {p for p, o in outcomes.items() if o["outcome"] == "not-applicable"} >= APART
    assert (code, wrong(outcomes)) == (0, {})
    assert outcomes["other-paths"]["outcome"] == "pass"
    assert not any("count_tokens" in e["path"] for e in outcomes["other-paths"]["exchanges"])

    code, outcomes = validated(tmp_path / "by-hand", capfd, "--set", "reasoning_parser=qwen3")
    assert (code, wrong(outcomes)) == (0, {})  # a known miss of the parser is no news of the server


@pytest.mark.parametrize("batching", one_of_each([True, False]))
def test_top_k_is_heard_by_one_of_its_two_engines_only(
    batching: bool, vllm_mlx_engine: Installed, importer_home: Path
) -> None:
    document = {
        "name": "m",
        "parameters": {"temperature": 1.0, "top_k": 1},
        "engine_args": {"continuous_batching": batching},
    }
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Name a random number from one to twenty."}],
    }
    with serve(get("vllm-mlx"), vllm_mlx_engine.python, document, MODEL) as served:
        answers = [request(served.port, "/v1/chat/completions", body) for _ in range(12)]
    found = {answer["choices"][0]["message"]["content"] for answer in answers}
    assert (len(found) > 1) == batching
