"""Judging the prompt: how it begins and ends, and what of a conversation and its switches reaches it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jinja2 import Template

from importer.validation import diagnosis
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.expectations import Expectations, promise_of
from importer.validation.outcome import NotApplicable as Skipped
from importer.validation.probes.prompt import (
    judge_counts,
    judge_switches,
    judge_turn,
    judge_variables,
    prompt_rendered,
)
from importer.validation.probes.reasoning import left_open
from importer.validation.probes.tools import judge_call_history
from importer.validation.prompts import (
    Prompt,
)
from tests.judging import CALL, MODEL, asked, copied, remedy, rendering, said, verdict


@pytest.mark.parametrize(
    ("rendered", "written", "expected"),
    [
        (CALL, CALL, "pass"),
        ('{"name": "get_weather", "arguments": "{\\"location\\": \\"Paris\\"}"}', CALL, "fail configuration"),
        ("{'location': 'Paris'}", CALL, "fail configuration"),
        ("{'location': 'Paris'}", "{'location': 'Paris'}", "pass"),
        ("{'location': 'Paris'}", "", "pass"),
        ("get_weather(location='Paris')", "get_weather(location='Paris')", "pass"),
        ("", CALL, "pass"),
    ],
)
def test_calls_of_earlier_turns(rendered: str, written: str, expected: str) -> None:
    assert verdict(judge_call_history(rendered, written)) == expected


@pytest.mark.parametrize(
    ("asked", "unasked", "answered", "expected"),
    [
        ("u:hi\na:", "u:hi\n", "u:hi\na:", "pass"),
        ("u:hi\n", "u:hi\n", "u:hi\na:", "fail configuration"),
        ("[INST] hi [/INST]", "[INST] hi [/INST]", "[INST] hi [/INST] ", "pass"),
        ("<u>hi<a><think>", "<u>hi", "<u>hi<a>", "pass"),
        ("<u>hi<a>", "<u>hi", "<u>hi<a><channel>final<message>", "pass"),  # an answer chooses its channel
        ("<u>hi<a>", "<u>hi<a>", "<u>hi", "pass"),  # begun whether asked or not
        ("<u>hi</u>", "<u>hi</u>", "nothing of it", "pass"),  # what is compared is another conversation
    ],
)
def test_the_assistants_turn_is_begun(asked: str, unasked: str, answered: str, expected: str) -> None:
    assert verdict(judge_turn(asked, unasked, answered)) == expected


@pytest.mark.parametrize(
    ("chat", "rendered", "others", "expected"),
    [
        (283, 283, (), "pass"),
        (286, 283, (), "pass"),  # another day's date
        (18, 283, (), "fail engine"),
        (18, 283, ("tokenizer_config.json",), "fail configuration"),
    ],
)
def test_the_engines_prompt_is_as_long_as_ours(
    chat: int, rendered: int, others: tuple[str, ...], expected: str
) -> None:
    assert verdict(judge_counts(chat, rendered, others)) == expected


def test_variables_that_the_template_does_not_know() -> None:
    assert verdict(judge_variables([])) == "pass"
    unknown = judge_variables(["thinking"])
    assert verdict(unknown) == "fail configuration"
    assert "chat_template_kwargs" in remedy(unknown)
    assert promise_of({"chat_template_kwargs": {"a": 1}}).variables == {"a": 1}


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


@pytest.mark.parametrize(
    ("value", "template", "expected"),
    [
        ("false", "{% if enable_thinking %}on{% endif %}", "fail configuration"),
        ("false", "{% if enable_thinking == 'false' %}off{% elif enable_thinking %}on{% endif %}", "pass"),
        ("false", "{{ 'always the same' }}", "pass"),
        ("low", "{% if enable_thinking %}on{% endif %}", "pass"),
    ],
)
def test_a_switch_that_is_a_text(value: str, template: str, expected: str) -> None:
    text = Template(template)
    told = judge_switches({"enable_thinking": value}, lambda name, v: text.render({name: v}))
    assert verdict(told) == expected


@pytest.mark.parametrize(
    ("rendered", "open_"),
    [
        ("<|im_start|>assistant\n<think>\n", True),
        ("[INST]two[/INST][THINK]", True),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("<|im_start|>assistant\n</think>", False),
        ("<think> is a marker<|im_end|>\n<|im_start|>assistant\n", False),
        ("", False),
    ],
)
def test_a_prompt_that_ends_in_an_open_block(rendered: str, open_: bool) -> None:
    assert (left_open(rendered) is not None) is open_
