"""The whole way on a real engine: import the demo model, run it, run it again by name and by file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from importer.cli.main import run
from importer.config_file import schema
from importer.demo import MODEL
from importer.engines.install import Installed
from importer.validation.probes import PROBES
from tests.validation.test_validation_engine import APART

pytestmark = pytest.mark.engine

KNOWN_BY_IMPORT = (
    "memory-predicted",
    "files-as-imported",
    "prompt-rendered",
    "tokenizer-whole",
    "token-numbers",
    "template-whole",
    "prompt-arrives",
    "request-options",
)


@pytest.fixture
def folder(tmp_path: Path, mlx_engine: Installed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder; caches of its own, the engine where it is."""
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def receipt(folder: Path) -> Any:
    data = json.loads((folder / "models" / "demo.receipt.json").read_text())
    schema.check("receipt", data, "receipt")
    return data


def failed(report: Any) -> list[Any]:
    return [o for o in report["outcomes"] if o["outcome"] in ("fail", "inconclusive")]


@pytest.mark.nightly
def test_from_a_directory_to_a_document_that_was_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(MODEL), "--name", "demo", "--backend", "mlx", "--yes", "--validate", "--json"]
    assert run(words) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    line = json.loads(out)
    schema.check("report", line, "stdout")
    assert "demo: validated on mlx" in err
    for parser in ("tool_parser", "reasoning_parser"):
        assert line["decisions"][parser]["status"] == "proved"
    first = receipt(folder)
    assert first["review"]["state"] == "approved"
    assert first["validation"]["digest"] == first["digest"]
    assert (first["validation"]["passed"], failed(first["validation"])) == (True, [])
    outcomes = {o["probe"]: o["outcome"] for o in first["validation"]["outcomes"]}
    assert {p.name for p in PROBES} <= set(outcomes)
    apart = [probe for probe in APART if probe not in KNOWN_BY_IMPORT]
    assert [probe for probe, outcome in outcomes.items() if outcome != "pass"] == apart

    assert run(["validate", "demo", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["passed"], failed(report)) == (True, [])
    assert receipt(folder)["validation"] == {"digest": first["digest"], **report}

    assert run(["validate", "models/demo.yaml"]) == 0
    shown = capsys.readouterr().out
    assert re.fullmatch(r"probes: \d+ pass, \d+ not-applicable\n", shown), (
        "of what passed one line is printed"
    )
    assert receipt(folder)["validation"]["passed"]
    assert receipt(folder)["review"] == first["review"]
    assert run(["list", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["review"], row["validation"]) == ("approved", "passed")
