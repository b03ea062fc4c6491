"""The real mlx-vlm with the model that ships: decided by proof, all probes pass, broken models explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.engines import get
from importer.engines.install import Installed
from importer.engines.process import serve
from tests.commandline import whole_receipt
from tests.engines.test_engine_mlx import request

# In the test command test_images_engine.py starts it.
pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.xdist_group("mlx-vlm")]
PROBES = {
    "health", "model-listed", "plain-chat", "stream-equals-whole", "no-special-tokens", "reasoning-apart",
    "message-forms", "tool-call", "tool-result-turn", "no-tool-needed",
    "stops-cleanly",
}  # fmt: skip


def test_the_demo_model_passes_and_what_the_engine_cannot_do_does_not_apply(
    mlx_vlm_engine: Installed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert mlx_vlm_engine.version == "0.7.10"
    chosen = ["--backend", "mlx-vlm", "--name", "demo", "--dir", str(tmp_path)]
    code = run([str(MODEL), *chosen, "--yes", "--validate", "--json"])
    shown = capfd.readouterr()
    assert code == 0, shown.err
    line = json.loads(shown.out)
    for key, value in (("tool_parser", "json_tools"), ("reasoning_parser", "<think>")):
        assert (line["decisions"][key]["value"], line["decisions"][key]["status"]) == (value, "proved")
    assert set(line["document"]["importer"]["client_sampling"]) == {"temperature", "top_p", "top_k"}
    receipt = whole_receipt(tmp_path / "demo.receipt.json")
    outcomes = {o["probe"]: o["outcome"] for o in receipt["validation"]["outcomes"]}
    assert {probe for probe, outcome in outcomes.items() if outcome == "pass"} >= PROBES
    assert set(outcomes.values()) == {"pass", "not-applicable"}


def test_it_thinks_when_the_document_reads_thoughts(mlx_vlm_engine: Installed, importer_home: Path) -> None:
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 100}
    thoughts = []
    for options in ([], ["reasoning_parser:<think>"]):
        with serve(get("mlx-vlm"), mlx_vlm_engine.python, {"name": "m", "options": options}, MODEL) as served:
            answer = request(served.port, "/v1/chat/completions", body | {"model": served.model})
        thoughts.append(answer["choices"][0]["message"]["reasoning"])
    assert thoughts[0] is None
    assert "greeting" in thoughts[1]
