"""Judging text, thoughts, sampling and counts: each judge passes the good answer and fails on its harm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from importer.validation.client import Client
from importer.validation.context import Context, together
from importer.validation.expectations import Expectations
from importer.validation.experiments import steadied
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass, Stage
from importer.validation.probes.chat import judge_log_probabilities, leak, token_signs
from importer.validation.probes.ends import _stop_strings, judge_reasoning_cut, judge_stop_strings
from importer.validation.probes.sampling import judge_structured_output, sampling_arrives, shape
from importer.validation.prompts import COUNT, GREETING, NAME_RECALL, SUM, Prompt
from importer.validation.reply import Reply
from tests.facts import as_reason
from tests.judging import said, verdict, words

COUNTED = Reply("One, two, three, four, five.", finish_reason="stop")


@pytest.mark.parametrize(
    ("content", "finish", "expected"),
    [
        ("One, two, thr", "stop", "pass"),
        ("One, two, thrur, five.", "stop", "fail engine"),  # mlx-lm 0.32.2: cut out, and on it goes
        ("One, two, three, four, five.", "stop", "fail engine"),  # mlx-vlm 0.7.10: it is not read
        ("One, two, three, fo", "stop", "fail engine"),
        ("One, two, three,", "stop", "fail engine"),
        ("One, two, ", "stop", "fail engine"),
        ("One, two, thr", "length", "fail engine"),
        ("Here you are: one", "stop", "inconclusive model"),
    ],
)
def test_a_stop_string_across_two_words(content: str, finish: str, expected: str) -> None:
    assert verdict(judge_stop_strings(said(content, finish), COUNTED, "ee, fo")) == expected


def test_an_answer_that_varies_is_asked_for_without_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter("ABCDEFGH")

    def chat(_client: Client, body: dict[str, Any], _log: object) -> Reply:
        text = COUNTED.content if "temperature" in body else f"{next(drawn)}: {COUNTED.content}"
        for stop in body.get("stop", ["#"]):
            text = text.partition(stop)[0]
        return said(text)

    monkeypatch.setattr(Client, "chat", chat)
    ctx = Context(Expectations(), "m", Client("http://127.0.0.1:1"))
    assert verdict(_stop_strings(ctx)) == "pass"

    def counts(here: Context) -> Outcome:
        same = here.ask(COUNT).content == COUNTED.content
        return Pass(as_reason("steady")) if same else Inconclusive(as_reason("varied"), Stage.DRAWN)

    varied = counts(ctx)
    assert verdict(steadied(ctx, varied, counts, {})) == "pass"
    hot = replace(ctx, promise=Expectations(sampling={"temperature": 1.5}))
    assert steadied(hot, varied, counts, {}) == varied
    wrong = Fail(as_reason("other"), Stage.WHOLE)
    assert steadied(ctx, wrong, counts, {}) == wrong


@pytest.mark.parametrize(
    ("prompt", "text", "right"),
    [
        (SUM, "2+2=4.", True),
        (SUM, "\u7b49\u4e8e4\u3002", True),
        (SUM, "Fourteen", False),
        (SUM, "404", False),
        (NAME_RECALL, "Y onMiYMira.", False),
        (NAME_RECALL, "MIRA!", True),
        (COUNT, "8, 9, 10", True),
        (COUNT, "Listen to ten words", False),
        (GREETING, "Hello to all.", False),
    ],
)
def test_an_answer_has_an_expected_word_whole(prompt: Prompt, text: str, right: bool) -> None:
    assert prompt.answered_by(text) is right


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("", "length", reasoning="This is"), "pass"),
        (said("", "length"), "pass"),
        (said("This is", "length"), "fail engine"),
        (said("This is", "length", reasoning="This is"), "fail engine"),
        (said("<think>This is", "length"), "fail configuration"),
        (said("", "stop", reasoning="This is"), "fail engine"),
        (said(""), "fail engine"),
        (said("Four", "length"), "inconclusive model"),
    ],
)
def test_a_thought_that_is_cut(reply: Reply, expected: str) -> None:
    full = said("Four.", reasoning="This is a sum.")
    assert verdict(judge_reasoning_cut(reply, full)) == expected


def token(text: str, logprob: Any = -0.1, *top: tuple[str, float]) -> dict[str, Any]:
    best = [{"token": t, "logprob": p} for t, p in top]
    return {"token": text, "bytes": list(text.encode()), "logprob": logprob, "top_logprobs": best}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((token("Hel"), token("lo!", -0.2, ("lo!", -0.2), ("p", -3.0))), "pass"),
        ((token("Hel", -9.0, ("Jel", -0.1), ("Hel", -9.0)), token("lo!")), "pass"),
        ((token("Hel"),), "fail engine"),
        ((token("Hel"), token("lo!"), token("x"), token("y")), "fail engine"),
        ((token("Good"), token("bye")), "fail engine"),
        ((token("Hel", 0.5), token("lo!")), "fail engine"),
        ((token("Hel", None), token("lo!")), "fail engine"),
        ((token("Hel", -0.1, ("a", -9.0), ("b", -0.1)), token("lo!")), "fail engine"),
        ((), "not-applicable"),
    ],
)
def test_log_probabilities(entries: tuple[Any, ...], expected: str) -> None:
    reply = replace(said("Hello!", wrote=2), logprobs=entries)
    assert verdict(judge_log_probabilities(reply)) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said('{"name": "Ada", "age": 36, "mark": "5a"}'), "pass"),
        (said('{"name": "Ada", "age": 36}'), "fail engine"),  # as a model writes it by itself
        (said('Here: {"name": "Ada", "age": 36, "mark": "5a"}'), "fail engine"),
        (said("", reasoning='{"name": "Ada", "age": 36, "mark": "5a"}'), "fail engine"),
        (said('{"name": "A', "length"), "inconclusive model"),
        (said('{"name": "Ada",' + " " * 40, "length"), "pass"),
        (said("Ada is" + " " * 40, "length"), "inconclusive model"),
    ],
)
def test_an_answer_of_a_schema(reply: Reply, expected: str) -> None:
    assert verdict(judge_structured_output(reply, shape("5a"))) == expected


def test_sampling_that_the_client_sends_is_not_looked_for() -> None:
    ours = Expectations(sampling={"temperature": 0.6}, client_sampling={"temperature": 0.6})
    assert sampling_arrives.needs(ours) is not None
    assert sampling_arrives.needs(replace(ours, client_sampling={})) is None


def test_a_stop_word_of_the_documents_is_not_for_clients() -> None:
    ends = token_signs(Expectations(markers=("[EOT]",), client_sampling={"stop": ["#turn#"]}))
    assert ends == ("[EOT]", "#turn#")
    shown = leak(said("Hello!#turn#"), ends)
    assert shown is not None
    assert verdict(shown) == "fail engine"
    assert leak(said("Hello!"), ends) is None
    assert token_signs(Expectations(client_sampling={"stop": "#turn#"})) == ("#turn#",)


def test_the_worst_of_several_ways_is_told() -> None:
    good, bad, unsure = (
        Pass(as_reason("well")),
        Fail(as_reason("broken"), Stage.WHOLE),
        Inconclusive(as_reason("who knows"), Stage.DRAWN),
    )
    assert words(together({"whole": good, "streamed": bad})) == "streamed: broken"
    assert together({"whole": unsure, "streamed": bad}).outcome == "fail"
    assert together({"whole": unsure, "streamed": good}).outcome == "inconclusive"
    assert together({"a": good, "b": NotApplicable(as_reason("no"))}) == good
    assert together({"a": NotApplicable(as_reason("no"))}).outcome == "not-applicable"
