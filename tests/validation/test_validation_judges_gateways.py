"""Judging what lies between client and template: history retold, prompts cut, settings that do not fit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from importer.demo import MODEL
from importer.hub import local
from importer.validation import failures, tool_markup
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations, promise_of
from importer.validation.outcome import Fail, Stage
from importer.validation.prompts import GREETING, SUM
from importer.validation.rendering import PromptRendering
from tests.facts import as_reason
from tests.judging import remedy


def context(render: PromptRendering | None = None, promise: Expectations | None = None) -> Context:
    return Context(promise or Expectations(), "m", Client("http://127.0.0.1:1"), render=render)


@pytest.fixture
def render() -> Iterator[PromptRendering]:
    with PromptRendering(local.resolve(str(MODEL), MODEL)) as made:
        yield made


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        ("got multiple values for keyword argument 'add_generation_prompt'", "add_generation_prompt"),
        ("top_p must be in (0, 1], got 0.0.", "top_p"),
        ("repetition_penalty must be greater than zero", "repeat_penalty"),
        ("the model does not exist", ""),
        ("a conversation about temperature is not for us", ""),
    ],
)
def test_a_refusal_that_names_a_setting_of_the_document(said: str, mend: str) -> None:
    promise = promise_of(
        {
            "parameters": {"top_p": 0.0, "temperature": 1.0, "repeat_penalty": -1.0},
            "chat_template_kwargs": {"add_generation_prompt": False},
        }
    )
    told = failures.failed(RequestRefused(400, said), context(promise=promise))
    assert told.attribution == "configuration"
    assert mend in remedy(told) if mend else not remedy(told)


def test_settings_that_change_the_numbers() -> None:
    plain = {"load_format": "mistral", "quantization": None, "engine_args": {"dtype": "auto"}}
    assert promise_of(plain).altering == {}
    assert promise_of({"engine_args": {"kv_bits": 2}}).altering == {"engine_args.kv_bits": 2}


def test_what_is_held_to_a_form_begins_behind_a_thought(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Fail(as_reason("get_time was named, and none came: ''"), Stage.WHOLE)
    thinker = context(promise=Expectations(reasoning_parser="qwen3"))
    thought = "<think>\nHm.\n</think>\n\nHello!"
    monkeypatch.setattr(Context, "raw", lambda _, asked, **__: thought if asked is SUM else '{"name": "Ada"}')
    told = tool_markup.unended(empty, GREETING, thinker)
    assert (told.outcome, told.attribution) == ("inconclusive", "model")
    assert tool_markup.unended(empty, GREETING, context()) == empty
    for written in (thought, "analysis: hm. final: Hello!"):
        monkeypatch.setattr(Context, "raw", lambda *_, written=written, **__: written)
        assert tool_markup.unended(empty, GREETING, thinker) == empty
