"""Judging what lies between client and template: history retold, prompts cut, settings that do not fit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from importer.demo import MODEL
from importer.hub import local
from importer.validation import blame
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import Refused
from importer.validation.outcome import Fail, NotApplicable
from importer.validation.probes import (
    prefix_cache,
    prompt_rendered,
    reasoning_apart,
    simple_answers,
    stop_words,
)
from importer.validation.promise import Promise, promise_of
from importer.validation.rendering import Rendering
from importer.validation.reply import Reply, Usage


def context(render: Rendering | None = None, promise: Promise | None = None) -> Context:
    return Context(promise or Promise(), "m", Client("http://127.0.0.1:1"), render=render)


@pytest.fixture
def render() -> Iterator[Rendering]:
    with Rendering(local.resolve(str(MODEL), MODEL)) as made:
        yield made


@pytest.mark.parametrize(
    ("short", "longer", "expected"),
    [
        ((60, 60), (260, 260), "pass"),
        ((62, 60), (262, 260), "pass"),  # a date that is another day's is in both
        ((60, 60), (252, 260), "fail"),
        ((60, 60), (290, 260), "fail"),
        (None, (260, 260), "not-applicable"),
    ],
)
def test_history_takes_as_many_tokens_as_the_template_writes(
    short: tuple[int, int] | None, longer: tuple[int, int] | None, expected: str
) -> None:
    assert prompt_rendered.judge_history(short, longer).outcome == expected


def test_variables_are_there_from_the_start() -> None:
    assert prompt_rendered.judge_start(14, 14).outcome == "pass"
    lost = prompt_rendered.judge_start(10, 14)
    assert (lost.attribution, "chat_template_kwargs" in lost.mend) == ("configuration", True)


def test_some_variables_are_the_engines_to_set() -> None:
    assert prompt_rendered.judge_taken([]).outcome == "pass"
    assert "add_generation_prompt" in prompt_rendered.judge_taken(["add_generation_prompt"]).mend


def test_a_prompt_has_a_token_for_each_word() -> None:
    assert prefix_cache.judge_whole(1000, 1015) is None
    assert prefix_cache.judge_whole(1000, None) is None
    assert isinstance(prefix_cache.judge_whole(1000, 680), Fail)


def test_a_stop_word_between_two_calls(render: Rendering) -> None:
    text = stop_words.between(context(render))
    assert "</tool_call>" in text
    assert "Rome" not in text
    assert stop_words.judge_calls(text, ("<|im_end|>", "Observation:")) is None
    told = stop_words.judge_calls(text, ("<|im_end|>", "</tool_call>"))
    assert told is not None
    assert (told.attribution, "</tool_call>" in told.mend) == ("configuration", True)
    promise = promise_of({"stopwords": ["</tool_call>"], "options": ["tool_parser:hermes"]})
    assert stop_words.needs(promise) is None
    assert stop_words.run(context(render, promise)).attribution == "configuration"
    assert stop_words.between(context()) == ""


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
    told = blame.failed(Refused(400, said), context(promise=promise))
    assert told.attribution == "configuration"
    assert mend in told.mend if mend else not told.mend


def test_noise_is_the_documents_where_it_does_not_load_the_weights() -> None:
    found = simple_answers.judge_missed(None, 3, 3)
    dice = promise_of({"load_format": "dummy"}).altering
    told = simple_answers.settings_fault(found, dice)
    assert (told.attribution, "load_format" in told.mend) == ("configuration", True)
    assert simple_answers.settings_fault(found, {}) is found
    foreign = simple_answers.judge_missed("<|im_start|>", 3, 3)
    assert simple_answers.settings_fault(foreign, dice) is foreign
    assert (
        promise_of(
            {"load_format": "mistral", "quantization": None, "engine_args": {"dtype": "auto"}}
        ).altering
        == {}
    )
    assert promise_of({"engine_args": {"kv_cache_dtype": "fp8"}}).altering == {
        "engine_args.kv_cache_dtype": "fp8"
    }


def test_a_model_that_is_told_not_to_think_by_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Reply("Four.", "", (), "stop", Usage(10, 3))
    monkeypatch.setattr(Client, "chat", lambda _self, _body, _log: answer)
    promise = Promise(reasoning_parser="x", offers=frozenset())
    with Rendering(local.resolve(str(MODEL), MODEL), {"enable_thinking": False}) as silent:
        assert isinstance(reasoning_apart.run(context(silent, promise)), NotApplicable)
    with Rendering(local.resolve(str(MODEL), MODEL)) as thinking:
        assert reasoning_apart.run(context(thinking, promise)).outcome == "inconclusive"
