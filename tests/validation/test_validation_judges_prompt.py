"""Judging the prompt: how it begins and ends, and what of a conversation and its switches reaches it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importer.validation import diagnosis
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import NotApplicable as Skipped
from importer.validation.probes.prompt import prompt_rendered
from importer.validation.prompts import Prompt
from tests.judging import MODEL, asked, copied, rendering, said


def test_who_leaves_something_out_of_the_prompt(tmp_path: Path) -> None:
    settings = json.loads((MODEL / "tokenizer_config.json").read_text())
    older = json.dumps(settings | {"chat_template": "{{ messages }}"})
    cases = {
        "engine": copied(tmp_path / "whole"),
        "configuration": copied(tmp_path / "two", tokenizer_config__json=older),
        "configuration ": copied(tmp_path / "none", chat_template__jinja="{{ messages }}"),
    }
    for part, folder in cases.items():
        with rendering(folder) as render:
            ctx = Context(Expectations(), "m", Client("http://127.0.0.1:1"), render=render)
            told = diagnosis.left_out(ctx, diagnosis.TOOLS, 9)
            assert told.attribution == part.strip(), folder
    ctx = Context(Expectations(), "m", Client("http://127.0.0.1:1"))
    assert diagnosis.left_out(ctx, diagnosis.TOOLS, 9).attribution == "configuration"


def test_what_a_template_and_its_repository_say(tmp_path: Path) -> None:
    settings = json.loads((MODEL / "tokenizer_config.json").read_text())
    claims = json.dumps(settings | {"tool_parser_type": "glm47", "chat_template": "{{ messages }}"})
    with rendering(copied(tmp_path / "m", tokenizer_config__json=claims)) as render:
        assert render.claimed == "glm47"
        assert render.others == ("tokenizer_config.json",)
        assert render.knows("enable_thinking")
        assert not render.knows("thinking")
    with rendering(MODEL) as render:
        assert (render.claimed, render.others) == (None, ())


def test_a_prompt_that_nobody_can_render_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = asked(lambda _: said("Hi."), monkeypatch)
    assert isinstance(prompt_rendered.run(ctx), Skipped)
    assert ctx.counted(Prompt("x", ())) is None
