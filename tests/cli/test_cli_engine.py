"""The whole way on a real engine: import the demo model, run it, run it again by name and by file."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from importer.cli.main import run
from importer.demo import MODEL
from importer.document import schema
from importer.engines.install import Installed
from importer.validation.probes import PROBES
from tests.commandline import whole_receipt
from tests.validation.test_validation_engine import APART

pytestmark = pytest.mark.engine

KNOWN_BY_IMPORT = (
    "files-as-imported", "prompt-rendered", "tokenizer-whole", "template-coverage",
    "request-options",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, mlx_engine: Installed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder; caches of its own, the engine where it is."""
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", str(mlx_engine.python))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def receipt(folder: Path) -> Any:
    return whole_receipt(folder / "models" / "demo.receipt.json")


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


SWITCHED = 'chat_template_kwargs={"enable_thinking":false}'
# A setting that fails, the kind of its remedy, and the options of an import that follow the remedy.
FOLLOWED = (
    ('stopwords=["Hello"]', "take-out-stopword", ("--unset", "stopwords")),
    ("repeat_penalty=3", "take-out-repeat-penalty", ("--unset", "repeat_penalty")),
    ("max_tokens=12", "raise-max-tokens", ("--set", "max_tokens=400")),
    ("tool_parser=qwen3_coder", "set-parser", ("--set", "tool_parser=json_tools")),
    (SWITCHED.replace("thinking", "thinkin"), "rename-variable", ("--set", SWITCHED)),
    (SWITCHED.replace("false", '"false"'), "without-quotes", ("--set", SWITCHED)),
)


@pytest.mark.nightly  # by day the guide on failures shows one: tests/product/test_docs.py
@pytest.mark.parametrize(("setting", "remedy", "words"), FOLLOWED)
def test_the_remedy_of_a_setting_removes_the_failure(
    folder: Path, capsys: pytest.CaptureFixture[str], setting: str, remedy: str, words: tuple[str, ...]
) -> None:
    words_of_import = (str(MODEL), "--name", "demo", "--backend", "mlx", "--yes", "--no-validate")
    assert run([*words_of_import, "--set", setting]) == 0
    capsys.readouterr()
    assert run(["validate", "demo", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert {o["remedy"]["kind"] for o in failed(report)} == {f"Remedy.{remedy}"}
    assert run([*words_of_import, *words]) == 0
    capsys.readouterr()
    assert run(["validate", "demo", "--json"]) == 0, failed(json.loads(capsys.readouterr().out))


@pytest.mark.nightly
def test_the_end_token_that_an_import_names_is_the_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """importer adds a stop word for the missing end token; the token in the file makes both go away."""
    model = folder / "model"
    shutil.copytree(MODEL, model)
    files = {"config": "eos_token_id", "generation_config": "eos_token_id", "tokenizer_config": "eos_token"}
    for name, key in files.items():
        path = model / f"{name}.json"
        path.write_text(
            json.dumps({**json.loads(path.read_text()), key: 0 if "id" in key else "<|endoftext|>"})
        )
    imported = (str(model), "--name", "demo", "--backend", "mlx", "--yes", "--validate", "--json")
    assert run(imported) == 1
    err = capsys.readouterr().err
    assert "eos_token_id in generation_config.json" in err
    assert {o["remedy"]["kind"] for o in failed(receipt(folder)["validation"])} == {"Remedy.end-at"}
    generation = model / "generation_config.json"
    generation.write_text(json.dumps({**json.loads(generation.read_text()), "eos_token_id": [0, 2]}))
    assert run(imported) == 0, failed(receipt(folder)["validation"])
    assert "Needs attention: stopwords" not in capsys.readouterr().err
