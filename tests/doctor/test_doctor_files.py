"""What the doctor finds in a model's own files: a foreign tokenizer, a lost token, too long a context."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer.engines import get
from importer.engines.doctor import model
from importer.engines.doctor.case import DoctorCase, Fine, Result, Trouble
from importer.engines.doctor.kinds import DoctorRemedy
from tests.judging import MODEL, copied


def told(result: Result) -> str:
    return f"{type(result).__name__} {getattr(result, 'part', '')}".strip()


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    folder = copied(tmp_path / "m")
    assert isinstance(model.tokenizer_settings(DoctorCase(weights=folder)), Fine)
    data = json.loads((folder / "tokenizer.json").read_text())
    data["added_tokens"][0]["content"] = "<renamed>"
    (folder / "tokenizer.json").write_text(json.dumps(data))
    assert isinstance(model.tokenizer_settings(DoctorCase(weights=folder)), Fine), "renamed in one place"
    for token in data["added_tokens"]:
        token["content"] += "x"
    (folder / "tokenizer.json").write_text(json.dumps(data))
    every = model.tokenizer_settings(DoctorCase(weights=folder))
    assert (told(every), getattr(every, "stops", None)) == ("Trouble configuration", True)
    for text in ("[]", "{", '{"added_tokens": [1, {"id": "a"}]}', '{"added_tokens": 3}'):
        (folder / "tokenizer.json").write_text(text)
        assert model.tokenizer_settings(DoctorCase(weights=folder)) is None
    assert model.tokenizer_settings(DoctorCase()) is None


def test_a_marker_that_is_no_token_any_more(tmp_path: Path) -> None:
    folder = copied(tmp_path / "m")
    data = json.loads((folder / "tokenizer.json").read_text())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] != "<|im_start|>"]
    (folder / "tokenizer.json").write_text(json.dumps(data))
    lost = model.tokenizer_settings(DoctorCase(weights=folder))
    assert told(lost) == "Trouble configuration"
    assert isinstance(lost, Trouble)
    assert lost.reason.fields["marker"] == "<|im_start|>"
    data["model"]["merges"].append(["<|im_", "start|>"])  # now a text can become it
    (folder / "tokenizer.json").write_text(json.dumps(data))
    assert isinstance(model.tokenizer_settings(DoctorCase(weights=folder)), Fine)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"max_model_len": 2048}, "Fine"),
        ({"max_model_len": 2049}, "Trouble configuration"),
        ({"context_size": 1_000_000}, "Trouble configuration"),
        ({"max_model_len": 4096, "engine_args": {"hf_overrides": {"a": 1}}}, "NoneType"),
        ({}, "NoneType"),
    ],
)
def test_a_context_beyond_the_models(document: dict[str, Any], expected: str) -> None:
    case = DoctorCase(engine=get("mlx"), document=document, weights=MODEL)
    assert told(model.context(case)) == expected
    assert model.context(replace(case, weights=None)) is None


@pytest.mark.parametrize("text", ["\u0120is", ","])
def test_an_end_token_that_is_a_word(tmp_path: Path, text: str) -> None:
    folder = copied(tmp_path / "m")
    case = DoctorCase(weights=folder)
    assert isinstance(model.ends(case), Fine)
    words = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, words[text]]}))
    told = model.ends(case)
    assert isinstance(told, Trouble)
    assert told.stops
    assert told.remedy.kind is DoctorRemedy.DROP_END
    assert told.remedy.fields["file"] == "generation_config.json"
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"eos_token_id": words[text]}))
    (folder / "generation_config.json").write_text('{"eos_token_id": "end"}')
    assert isinstance(model.ends(case), Fine)  # no engine reads that of config.json then
    (folder / "generation_config.json").write_text("{}")
    left = model.ends(case)
    assert isinstance(left, Trouble)
    assert left.remedy.fields["file"] == "config.json"
    (folder / "tokenizer.json").write_text("[]")
    assert model.ends(case) is None
