"""Judging what limits, stops or spoils answers: each judge fails on its harm alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from importer.reasons import Reason
from importer.validation import experiments as spoilt
from importer.validation import turn_forms
from importer.validation.client import Client
from importer.validation.context import TRIALS, Context
from importer.validation.errors import RequestRefused
from importer.validation.outcome import Fail, Outcome, Pass, Stage, Tried
from importer.validation.probes.chat import simple_answers
from importer.validation.probes.ends import judge_stop_words
from importer.validation.probes.message_forms import _system, message_forms
from importer.validation.probes.reasoning import reasoning_off
from importer.validation.prompts import SUM
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply, Usage
from tests.facts import as_reason
from tests.judging import MODEL, asked, rendering, said, verdict


def test_a_stop_word_without_which_no_answer_ends_is_kept() -> None:
    cut = judge_stop_words([said("Fine."), said("Hello! How can I help?")], (" can",))
    assert (cut.remedy, cut.tried) == (Reason(Remedy.TAKE_OUT_STOPWORD, word=" can"), Tried(2, 2))
    runs_on = said("Hello!<|im_end|>\n<|im_start|>user", "length")
    kept = judge_stop_words([runs_on], ("<|im_end|>",))
    assert (kept.remedy, kept.tried) == (Reason(Remedy.END_AT, token="<|im_end|>"), Tried(1, 1))


def test_most_simple_questions_have_to_be_answered_right(monkeypatch: pytest.MonkeyPatch) -> None:
    right = {"two plus two": "Four.", "Count": "One to ten.", "my name": "Mira."}

    def good(body: Any) -> Reply:
        text = body["messages"][-1]["content"]
        return said(next((a for q, a in right.items() if q in text), "?"))

    assert verdict(simple_answers.run(asked(good, monkeypatch))) == "pass"
    chance = asked(lambda body: good(body) if body.get("temperature") == 0 else said("Cats."), monkeypatch)
    assert verdict(simple_answers.run(chance)) == "pass"
    spoils = replace(chance, promise=replace(chance.promise, sampling={"temperature": 2}))
    assert verdict(simple_answers.run(spoils)) == "fail model"
    wrong = asked(lambda _: said("q4 Tq"), monkeypatch)
    assert verdict(simple_answers.run(wrong)) == "inconclusive unexplained"
    weak = asked(lambda body: said("4.") if "two plus" in str(body) else said("Cats."), monkeypatch)
    assert verdict(simple_answers.run(weak)) == "inconclusive model"  # no damage: some are right
    endless = said("Four.<|im_end|>\nuser\nHey<|im_end|>", "length")
    assert verdict(simple_answers.run(asked(lambda _: endless, monkeypatch))) == "fail configuration"
    noise = said("Hey<|im_end|>\nuser\nHey<|im_end|>", "length")
    assert verdict(simple_answers.run(asked(lambda _: noise, monkeypatch))) == "inconclusive unexplained"


@pytest.mark.parametrize(
    ("told", "counts", "alone", "promised", "expected"),
    [
        ("q4 Tq", (10, 10), True, {}, "fail engine"),
        ("q4 Tq", (10, 10), False, {}, "fail model"),
        ("q4 Tq", (10, 12), True, {}, "inconclusive unexplained"),  # another prompt: no option is at fault
        ("q4 Tq", None, True, {}, "inconclusive unexplained"),
        ("q4 Tq", (10, 10), True, {"stopwords": ("T",)}, "inconclusive unexplained"),
        ("q4 Tq", (10, 10), True, {"client_sampling": {"top_k": 1}}, "inconclusive unexplained"),
        ("q4 Tq", (10, 10), True, {"sampling": {"temperature": 2.0}}, "fail model"),
    ],
)
def test_who_changes_options_is_at_fault_where_the_weights_answer_right(
    told: str,
    counts: tuple[int, int] | None,
    alone: bool,
    promised: dict[str, Any],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Context, "counted", lambda *_: counts)
    monkeypatch.setattr(turn_forms, "right_by_itself", lambda *_: alone)
    with rendering(MODEL) as render:
        ctx = replace(asked(lambda _: said(told), monkeypatch, **promised), render=render)
        outcome = simple_answers.run(ctx)
    assert verdict(outcome) == expected
    altered = Reason(Remedy.HEED_OPTIONS, option="logit_bias")
    assert (outcome.remedy == altered) is (expected == "fail engine")


def test_an_answer_that_a_slow_engine_has_cut_is_asked_for_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    right = {"two plus two": "Four.", "Count": "One to nine.", "my name": "Mira."}

    def rambles(body: Any) -> Reply:
        text = body["messages"][-1]["content"]
        answer = next((a for q, a in right.items() if q in text), "?")
        return said(f"Well, well. {answer}") if body["max_tokens"] > 48 else said("Well, well.", "length")

    assert verdict(simple_answers.run(asked(rambles, monkeypatch, plain=48))) == "pass"
    cut = asked(lambda _: said("Well, well.", "length"), monkeypatch, plain=48)
    assert verdict(simple_answers.run(cut)) == "inconclusive unexplained"


def test_a_value_without_which_a_probe_passes_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = {"temperature": 0.7, "presence_penalty": 0.0, "repetition_penalty": 2.0}
    assert spoilt.suspects(sampling) == {"repetition_penalty": 2.0}
    assert spoilt.suspects({"temperature": 1.0}) == {}
    assert spoilt.suspects({"temperature": 5, "top_k": 0}) == {"temperature": 5}

    def run(ctx: Context) -> Outcome:
        return (
            Pass(as_reason("x")) if ctx.ask(SUM).content == "Four." else Fail(as_reason("noise"), Stage.WHOLE)
        )

    def heard(body: Any) -> Reply:
        return said("Four." if body.get("repetition_penalty") == 1.0 else "F5")

    taken_out = Reason(Remedy.TAKE_OUT_SETTING, key="parameters.repeat_penalty")
    ctx = asked(heard, monkeypatch, sampling=sampling)
    told = spoilt.without(ctx, Fail(as_reason("noise"), Stage.WHOLE), run, {})
    assert (verdict(told), told.remedy) == ("fail configuration", taken_out)
    ctx = asked(lambda _: said("F5"), monkeypatch, sampling=sampling)
    assert verdict(spoilt.without(ctx, Fail(as_reason("noise"), Stage.WHOLE), run, {})) == "fail engine"
    assert spoilt.without(ctx, Pass(as_reason("y")), run, {}) == Pass(as_reason("y"))


def test_none_leaves_a_field_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Reply:
        sent.append(body)
        return said("Four.")

    asked(answer, monkeypatch, client_sampling={"stop": ["x"]}).ask(SUM, stop=None, max_tokens=None)
    assert not {"stop", "max_tokens"} & sent[0].keys()


def test_a_server_that_breaks_over_two_questions_fails_though_a_role_is_only_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(body: Any) -> Reply:
        if [turn["role"] for turn in body["messages"]] == ["user", "user"]:
            raise RequestRefused(500, "Roles must alternate")
        return replace(said("Hi."), usage=Usage(len(str(body["messages"])), 1))

    assert verdict(message_forms.run(asked(answer, monkeypatch))) == "fail engine"


def test_words_of_the_system_are_not_compared_where_one_of_two_prompts_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = iter([20, None])
    ctx = asked(lambda _: replace(said("Hi."), usage=Usage(next(counts), 1)), monkeypatch)
    assert verdict(_system(ctx)) == "not-applicable"


def test_a_switch_that_does_not_reach_the_prompt_keeps_what_was_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def counted(text: str) -> Reply:
        return Reply("Hm.", "I think.", (), "stop", Usage(len(text), 1))

    with rendering(MODEL) as render:
        ctx = replace(asked(lambda _: counted(render(SUM)), monkeypatch, reasoning_parser="x"), render=render)
        monkeypatch.setattr(Client, "completion", lambda _self, body, _log: counted(body["prompt"]))
        outcome = reasoning_off.run(ctx)
    assert verdict(outcome) == "fail engine"
    assert (outcome.trials, outcome.within) == (TRIALS, ("whole",))
    assert [judged.outcome.shows(outcome.seen) for judged in ctx.judged_wrong] == [True, True]
