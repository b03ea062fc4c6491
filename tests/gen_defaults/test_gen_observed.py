"""Calls that validations saw, beside the table: only of readable receipts, and of models of the Hub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gen_defaults.__main__ import main
from importer.cli.main import run
from importer.demo import MODEL
from importer.signals.observed import CallForm

SEEN = (
    CallForm(None, 0, 12, digest="a" * 64),
    CallForm("hf", 9, 12, "as-written", "b" * 64, spelling=(("<tool_call>", "```json"),)),
    CallForm("hermes", 4, 4, choice="required"),
)


def test_calls_of_the_live_model_are_rows_for_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(MODEL), "--name", "seen", "--dir", str(tmp_path), "--backend", "mlx", "--yes"]
    assert run([*words, "--no-validate"]) == 0, capsys.readouterr().err
    receipt = json.loads((tmp_path / "seen.receipt.json").read_text())
    receipt["request"]["observed"] = [form.to_json() for form in SEEN]
    for name, model in (("seen", "Qwen/Qwen2.5-7B-Instruct"), ("local", None)):
        receipt |= {"model_id": model, "revision": "0" * 40}
        (tmp_path / f"{name}.receipt.json").write_text(json.dumps(receipt))
    (tmp_path / "broken.receipt.json").write_text("{")
    capsys.readouterr()
    assert main(["observed", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "broken.receipt.json is left out" in err
    ((model, row),) = json.loads(out).items()
    assert (model, row["family"], row["table"]) == ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5", "hermes")
    assert row["served"] == {"tool_parser": None, "calls": "0 of 12"}
    assert row["better"] == {"tool_parser": "hf", "template": "as-written", "calls": "9 of 12"}
    assert "0" * 40 in row["source"]
