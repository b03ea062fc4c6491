"""The score: its questions are sound, its figures are those of the definitions, its time is limited."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from importer.config_file.schema import load
from importer.progress import silent
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.expectations import Expectations
from importer.validation.outcome import wilson
from importer.validation.reply import Reply, ToolCall
from importer.validation.score import (
    KINDS,
    QUESTIONS,
    Marks,
    Question,
    f1,
    figures,
    fits,
    marked,
    measure,
    share,
)
from tests.openai_api import api

TABLE = {"restaurant": "Aurora", "guests": 4}
BY_NAME = {question.name: question for question in QUESTIONS}


def call(name: str, arguments: object, index: int = 0) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(index, f"call{index}", name, text)


def right(question: Question) -> Reply:
    """The answer that a question calls for."""
    return Reply(tool_calls=tuple(call(n, a, i) for i, (n, a) in enumerate(question.calls)))


def test_there_are_forty_questions_and_some_of_each_kind() -> None:
    assert len(BY_NAME) == len(QUESTIONS) == 40
    assert len({question.text for question in QUESTIONS}) == 40
    counts = Counter(question.kind for question in QUESTIONS)
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 6
    assert {question.kind for question in QUESTIONS[: len(KINDS)]} == set(KINDS)  # in turn
    assert all(bool(q.calls) is (q.kind != "no-tool") for q in QUESTIONS)
    assert all((len(q.calls) > 1) is (q.kind == "parallel") for q in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_can_be_answered_and_names_what_is_expected(question: Question) -> None:
    for tool in question.tools:
        Draft202012Validator.check_schema(tool["function"]["parameters"])
    marks = marked(question, right(question))
    assert (marks.right, marks.valid) == (True, len(question.calls))
    assert marks.due is marks.called is bool(question.calls)
    texts = [
        value for _, arguments in question.calls for value in arguments.values() if isinstance(value, str)
    ]
    words = question.text.casefold()
    currencies = {"EUR": "euro", "USD": "dollar", "JPY": "yen", "GBP": "pound"}
    assert all(currencies.get(text, text).casefold() in words for text in texts)


@pytest.mark.parametrize(
    ("name", "calls", "valid", "good"),
    [
        ("one-tool-1", [("get_weather", {"location": " OSLO "})], 1, True),
        ("one-tool-1", [("get_weather", {"location": "Oslo", "unit": "C"})], 1, True),
        ("one-tool-1", [("get_weather", {"location": "Paris"})], 1, False),
        ("one-tool-1", [("get_weather", {"city": "Oslo"})], 0, False),
        ("one-tool-1", [("get_weather", '{"location": ')], 0, False),
        ("one-tool-1", [("get_weather", json.dumps('{"location": "Oslo"}'))], 0, False),  # encoded twice
        ("one-tool-1", [("get_time", {"location": "Oslo"})], 0, False),  # not on offer
        ("one-tool-1", [("get_weather", {"location": "Oslo"})] * 2, 2, False),  # once too often
        ("one-tool-5", [("set_timer", {"minutes": 12.0})], 1, True),
        ("one-tool-5", [("set_timer", {"minutes": "12"})], 0, False),
        ("one-tool-5", [("set_timer", {"minutes": True})], 0, False),
        ("no-tool-1", [("get_weather", {"location": "Oslo"})], 1, False),
        ("parallel-1", [("get_weather", {"location": c}) for c in ("Athens", "Rome")], 2, True),
        ("parallel-1", [("get_weather", {"location": "Rome"})], 1, False),
        ("typed-5", [("add_to_list", {"items": ["bread", "rice", "salt"]})], 1, False),  # another order
        ("typed-7", [("book_table", TABLE | {"contact": {"name": "mira", "phone": "1"}})], 1, True),
        ("typed-7", [("book_table", TABLE | {"contact": {"name": "Jonas"}})], 1, False),
        ("typed-7", [("book_table", TABLE)], 0, False),
    ],
)  # fmt: skip
def test_an_answer_gets_its_marks(name: str, calls: list[tuple[str, Any]], valid: int, good: bool) -> None:
    reply = Reply(tool_calls=tuple(call(n, a, i) for i, (n, a) in enumerate(calls)))
    marks = marked(BY_NAME[name], reply)
    assert (marks.calls, marks.valid, marks.right) == (len(calls), valid, good)


@given(st.text() | st.sampled_from(["[]", "null", "1", "[" * 5000]))
def test_any_arguments_are_judged(text: str) -> None:
    assert fits(call("get_weather", text), BY_NAME["one-tool-1"].tools) is False


def made(kind: str, due: bool, called: bool, valid: int = 0) -> Marks:
    return Marks(kind, due, called, int(called), valid, due is called)


def test_the_figures_are_those_of_the_definitions() -> None:
    marks = [
        *[made("one-tool", due=True, called=True, valid=1)] * 6,
        *[made("one-tool", due=True, called=False)] * 2,
        *[made("no-tool", due=False, called=True)] * 3,
        *[made("no-tool", due=False, called=False)] * 4,
    ]
    found = figures(marks, KINDS)
    assert found["trigger"]["precision"] == share(6, 9)
    assert found["trigger"]["recall"] == share(6, 8)
    assert found["trigger"]["f1"]["value"] == round(12 / 17, 4)
    assert found["schema"] == share(6, 9)
    assert found["right"] == share(10, 15)
    assert found["kinds"]["no-tool"] == share(4, 7)
    assert found["kinds"]["typed"] == {"value": None, "interval": None, "agreed": 0, "trials": 0}
    assert figures([], KINDS)["trigger"]["f1"]["value"] is None


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_f1_lies_in_its_interval_and_is_the_harmonic_mean(hit: int, false: int, missed: int) -> None:
    found = f1(hit, false, missed)
    if hit + false + missed == 0:
        assert found["value"] is found["interval"] is None
        return
    low, high = found["interval"]
    assert 0 <= low <= found["value"] + 1e-4
    assert found["value"] <= high + 1e-4 <= 1 + 1e-4
    if hit:
        precision, recall = hit / (hit + false), hit / (hit + missed)
        assert found["value"] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-4)
    bounds = wilson(hit, hit + false + missed)
    assert bounds is not None
    assert low == pytest.approx(2 * bounds[0] / (1 + bounds[0]), abs=1e-4)


def context(url: str, **promised: Any) -> Context:
    return Context(Expectations(**{"tool_parser": "x", **promised}), "hers", Client(url))


def test_a_server_is_measured() -> None:
    """It calls the weather of Rome whenever it is offered a tool."""
    with api() as (url, asked):
        found = measure(context(url), 2, silent)
    assert found is not None
    assert (found["asked"], found["answered"], found["complete"]) == (80, 80, True)
    assert Counter(body["seed"] for body in asked) == {0: 40, 1: 40}
    due = sum(question.kind != "no-tool" for question in QUESTIONS)
    assert found["trigger"]["recall"] == share(2 * due, 2 * due)
    assert found["trigger"]["precision"] == share(2 * due, 80)
    offered = sum(any(t["function"]["name"] == "get_weather" for t in q.tools) for q in QUESTIONS)
    assert found["schema"] == share(2 * offered, 80)
    assert found["right"]["agreed"] == 0
    fit_schema(found)


def fit_schema(found: Mapping[str, Any]) -> None:
    schema = load("receipt")
    whole = {"$defs": schema["$defs"], **schema["properties"]["score"]}
    Draft202012Validator(whole).validate({"digest": "sha256:0", "engine": {"name": "mlx"}, **found})


def test_its_time_is_limited_and_what_was_not_asked_is_in_no_figure() -> None:
    with api() as (url, asked):
        found = measure(context(url), 20, silent, limit=0.2)
    assert found is not None
    assert found["seconds"] < 20
    assert found["complete"] is False
    assert len(asked) <= found["asked"] < 800  # the last ones may end before they are read
    assert found["right"]["trials"] == found["answered"] <= found["asked"]
    fit_schema(found)


def test_a_server_that_is_gone_gives_no_figures() -> None:
    with api() as (url, _):
        pass
    found = measure(context(url), 1, silent)
    assert found is not None
    assert (found["answered"], found["complete"], found["right"]["value"]) == (0, False, None)
    fit_schema(found)


def test_a_model_without_tools_is_not_scored() -> None:
    assert measure(context("http://127.0.0.1:1", tool_parser=None), 1, silent) is None
    assert measure(context("http://127.0.0.1:1", chats=False), 1, silent) is None


def test_no_request_goes_on_after_an_interruption() -> None:
    left = threading.Event()

    def leave(_: str) -> None:
        left.set()
        raise KeyboardInterrupt

    with api() as (url, asked), pytest.raises(KeyboardInterrupt):
        measure(replace(context(url)), 1, leave)
    assert left.is_set()
    assert len(asked) < len(QUESTIONS)
