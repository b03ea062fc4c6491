"""A response template in a document: written with the parser that reads with it, served, and not exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.decisions.decision import Chosen, Undecided
from importer.document import schema, template_file
from importer.document.build import Built
from importer.document.build_text import to_text
from importer.document.document import document_of
from importer.engines.model_folder import with_response_template
from importer.errors import DocumentError
from importer.exports import FORMATS
from importer.exports.base import Options
from importer.exports.kinds import Unexportable
from importer.reasons import Reason
from tests.exporting import VLLM
from tests.facts import as_reason

TEMPLATE = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "content": {"close": "<|im_end|>"},
        "tool_calls": {
            "repeats": True,
            "open_pattern": '<do\\s*what="it">\\s*',
            "close_pattern": "</do>\\s*:\\s*#\\s*'x'",
            "content": "xml-inline",
        },
    },
}
WHY = (as_reason("proved"),)
HF = {"tool_parser": Chosen("hf", "proved", WHY), "reasoning_parser": Undecided(WHY)}
OTHER = {"tool_parser": Chosen("hermes", "proved", WHY), "reasoning_parser": Undecided(WHY)}


def with_template(*options: str) -> dict[str, Any]:
    block = {**VLLM["importer"], template_file.RESPONSE_TEMPLATE_KEY: TEMPLATE}
    return {**VLLM, "options": [*options], "importer": block}


def test_the_template_is_written_with_its_parser_alone() -> None:
    assert template_file.parser_entry(HF, TEMPLATE) == {"response_template": TEMPLATE}
    assert template_file.parser_entry(OTHER, TEMPLATE) == {}
    assert template_file.parser_entry(HF, None) == {}


def test_it_is_in_force_while_a_parser_reads_with_it() -> None:
    assert template_file.derived_parser_of(with_template("tool_parser:hf")) == TEMPLATE
    assert template_file.derived_parser_of(with_template("reasoning_parser:hf")) == TEMPLATE
    assert template_file.derived_parser_of(with_template("tool_parser:hf", "tool_parser:hermes")) is None
    assert template_file.derived_parser_of({**VLLM, "options": ["tool_parser:hf"]}) is None


def test_expressions_survive_the_file(tmp_path: Path) -> None:
    data = with_template("tool_parser:hf")
    text = to_text(Built(data, {}))
    assert yaml.safe_load(text)["importer"]["response_template"] == TEMPLATE
    schema.check("document", data, tmp_path / "x.yaml")
    wrong = {**data, "importer": {**data["importer"], template_file.RESPONSE_TEMPLATE_KEY: "text"}}
    with pytest.raises(DocumentError):
        schema.check("document", wrong, tmp_path / "x.yaml")


def test_the_engine_gets_the_models_files_with_the_template(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    (model / "tokenizer_config.json").write_text(json.dumps({"eos_token": "é", "response_template": {}}))
    (tmp_path / "work").mkdir()
    copy = with_response_template(model, TEMPLATE, tmp_path / "work")
    settings = json.loads((copy / "tokenizer_config.json").read_text("utf-8"))
    assert settings == {"eos_token": "é", "response_template": TEMPLATE}
    assert (copy / "model.safetensors").resolve() == model / "model.safetensors"
    assert json.loads((model / "tokenizer_config.json").read_text())["response_template"] == {}


@pytest.mark.parametrize("text", [None, "[]", "{"])
def test_a_model_without_a_configuration_is_not_started(tmp_path: Path, text: str | None) -> None:
    model = tmp_path / "model"
    model.mkdir()
    if text is not None:
        (model / "tokenizer_config.json").write_text(text)
    with pytest.raises(DocumentError) as caught:
        with_response_template(model, TEMPLATE, tmp_path)
    assert caught.value.kind == "invalid"
    assert "tokenizer_config.json" in caught.value.message


@pytest.mark.parametrize("name", [n for n in FORMATS if not n.startswith(("mlx", "sglang", "vllm-mlx"))])
def test_an_export_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(DocumentError) as refused:
        FORMATS[name].export(with_template("tool_parser:hf"), None, Options())
    reason = Reason(Unexportable.PARSER_IS_DATA, file="tokenizer_config.json")
    assert (refused.value.kind, refused.value.details["reason"]) == ("cannot-export", reason)
    assert FORMATS[name].export(with_template("tool_parser:hermes"), None, Options()).files


def test_a_pattern_of_another_form_is_refused() -> None:
    """At any place of the template; what an import derives is taken."""
    deep: dict[str, object] = {"deeper": [{"still": "("}]}
    for value in ("(a+)+$", "(a|a)*b", "[^a]*", "a+", r"\s*\s*x", ["(.*a){20}"], deep, ""):
        found = [*template_file.faults(document_of(changed("close_pattern", value)))]
        assert [reason.kind for _, reason in found] == [template_file.PatternReason.FREE], value
    for derived in (r"<a>\s*", r"</do>\s*:\s*#", r"<\|tool\|>", r"\[CALLS\]\s*\{"):
        assert [*template_file.faults(document_of(changed("close_pattern", derived)))] == []


def changed(key: str, value: object) -> dict[str, Any]:
    calls = {**TEMPLATE["fields"]["tool_calls"], key: value}  # type: ignore[dict-item]
    return {"importer": {template_file.RESPONSE_TEMPLATE_KEY: {**TEMPLATE, "fields": {"tool_calls": calls}}}}
