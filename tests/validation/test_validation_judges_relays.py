"""Judging what relays do on the way, calls without arguments, tools that vanish, and answers with a gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from importer.reasons import Reason
from importer.validation import cause, other_apis
from importer.validation.context import Shared, ask_both_ways
from importer.validation.explain import of_ability
from importer.validation.outcome import Fail, Inconclusive, NotShown, Outcome, Pass, ProbeRow, Report, Stage
from importer.validation.probe import Probe
from importer.validation.probes import every
from importer.validation.probes.chat import judge_log_probabilities, no_special_tokens, simple_answers
from importer.validation.probes.tools import tool_call
from importer.validation.prompts import GREETING, NAME_RECALL
from importer.validation.remedy import WHOLE_ANSWERS, Remedy
from importer.validation.reply import Reply, Usage, other_bytes
from tests.facts import as_reason
from tests.judging import asked, said, verdict, words


def test_what_a_model_does_not_do_is_a_figure_and_damaged_weights_are_a_fault() -> None:
    missed = Inconclusive(as_reason("no call"), Stage.DRAWN, trials=3)
    shown = of_ability(ProbeRow(tool_call.name, "", missed, ability="tools")).outcome
    assert (verdict(shown), shown.reason, shown.trials) == ("not-shown model", missed.reason, 3)
    damaged = Fail(as_reason("noise"), Stage.DRAWN, Reason(Remedy.WHOLE_WEIGHTS))
    follows = replace(missed, follows=(simple_answers.name,))
    assert of_ability(ProbeRow(simple_answers.name, "", damaged)).outcome == damaged
    for other in (follows, Pass(as_reason("x")), Fail(as_reason("x"), Stage.WHOLE)):
        assert of_ability(ProbeRow(tool_call.name, "", other)).outcome == other


@pytest.mark.parametrize("one", every(), ids=lambda one: str(one.name))
def test_no_probe_of_the_contract_is_excused_by_the_model(
    one: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Fail(as_reason("whole and streamed differ"), Stage.STREAM, WHOLE_ANSWERS)
    monkeypatch.setattr(cause, "traced", lambda outcome, _ctx: cause.of_the_model(outcome, ctx))
    ctx = asked(lambda _: said("Hello."), monkeypatch)
    made = cause.of(replace(one, run=lambda _ctx: lost), ctx)
    rows = [of_ability(ProbeRow(one.name, "", made, ability=one.ability))]
    mute = Inconclusive(as_reason("the answer is empty"), Stage.DRAWN)
    rows.append(of_ability(ProbeRow(one.name, "", mute, ability=one.ability)))
    contract = not one.of_model
    assert (made == lost) is contract
    assert any(isinstance(row.outcome, NotShown) for row in rows) is not contract
    if contract:
        assert Report({}, "", {}, tuple(rows)).contract == "broken"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((("tool-call", NotShown(as_reason("declined"), trials=3)),), ("holds", "no verdict", True, (1, 4))),
        ((("simple-answers", Pass(as_reason("right"))),), ("holds", "whole", True, (1, 1))),
        ((("simple-answers", Pass(as_reason("two of three"), trials=3, agreed=2)),),
         ("holds", "no verdict", True, (1, 1))),
        ((("simple-answers", Fail(as_reason("worse"), Stage.DRAWN)),), ("holds", "damaged", False, (1, 1))),
        ((("simple-answers", Inconclusive(as_reason("?"), None)),),
         ("no verdict", "no verdict", False, (1, 1))),
        ((("message-forms", Fail(as_reason("lost"), Stage.START)),),
         ("broken", "no verdict", False, (1, 1))),
    ],
)  # fmt: skip
def test_contract_weights_and_abilities_are_three_verdicts(
    rows: tuple[tuple[str, Outcome], ...], expected: tuple[object, ...]
) -> None:
    shown = ProbeRow("tool-call", "", Pass(as_reason("called")), ability="tools")
    made = [
        ProbeRow(name, "", outcome, ability="tools" if name == "tool-call" else "") for name, outcome in rows
    ]
    report = Report({}, "", {}, (shown, *made))
    figure = report.abilities["tools"]
    told = (report.contract, report.health, report.passed, (figure["shown"], figure["asked"]))
    assert told == expected


def test_markup_in_any_answer_of_a_run_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(body: Any) -> Reply:
        asks = body["messages"][-1]["content"]
        return said("I was told. </think> Mira." if asks == "What is my name?" else "Hello.")

    ctx = asked(answer, monkeypatch)
    assert isinstance(no_special_tokens.run(ctx), Pass)
    assert NAME_RECALL.answered_by(ctx.first(NAME_RECALL).content)
    leaked = no_special_tokens.run(ctx)
    assert isinstance(leaked, Fail)
    assert "thinking marker" in words(leaked)
    again = replace(ctx, shared=Shared(leaking=ctx.shared.leaking))  # another start asks the same
    assert isinstance(no_special_tokens.run(again), Fail)


def test_a_call_that_another_api_loses_is_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same chat calls, each time that it is asked, and the other API never does."""
    for greedy, chats, expected in (
        (True, "yes", "fail engine"),
        (False, "yes", "fail engine"),
        (False, "at times", "inconclusive model"),
    ):
        answers = iter(["yes"])
        ctx = asked(
            lambda _, chats=chats, answers=answers: said("yes" if chats == "yes" else next(answers, "no")),
            monkeypatch,
            sampling={"temperature": 0 if greedy else 1},
        )

        def judge(reply: Reply) -> Outcome:
            return (
                Pass(as_reason("x")) if reply.content == "yes" else Inconclusive(as_reason("x"), Stage.DRAWN)
            )

        found = other_apis.judged_beside(ctx, GREETING, lambda **_: said("no"), judge)
        assert verdict(found) == expected


@pytest.mark.parametrize(
    ("streamed", "usage", "expected"),
    [
        ("Hello to all.", Usage(9, 4), None),
        ("to all.", Usage(9, 4), Stage.STREAM),
        ("Hello to all.", Usage.of(0, 4, None), Stage.WHOLE),
    ],
)
def test_another_api_streams_what_it_answers_whole_and_counts_prompts(
    streamed: str, usage: Usage, expected: Stage | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = asked(lambda _: said("Hello to all."), monkeypatch)

    def ask(_ctx: object, _prompt: object, *, stream: bool, **_more: object) -> Reply:
        return replace(said(streamed if stream else "Hello to all."), usage=usage)

    found = other_apis.compared(ctx, GREETING, ask)
    assert (found.stage if found else None) is expected


def test_an_engine_that_is_wrong_in_streams_alone_answers_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(reply: Reply) -> Outcome:
        return Pass(as_reason("x")) if reply.content == "whole" else Fail(as_reason("long"), Stage.WHOLE)

    ctx = asked(lambda body: said("stream" if body.get("stream") else "whole"), monkeypatch)
    found = ask_both_ways(ctx, GREETING, judge)
    assert (found.remedy.kind if found.remedy else None) is Remedy.WHOLE_ANSWERS
    ctx = asked(lambda _: said("stream"), monkeypatch)
    corrected = cause.settled(ask_both_ways(ctx, GREETING, judge), ctx).remedy
    assert corrected == Reason(Remedy.ANSWERS_UNALTERED, change=as_reason("long"))


def test_the_bytes_of_a_token_are_those_of_its_text() -> None:
    right = {"token": " is", "bytes": [32, 105, 115]}
    assert other_bytes(right) is None
    assert other_bytes({**right, "bytes": [32, 104, 114]}) == " hr"
    assert other_bytes({"token": "\ufffd", "bytes": [240]}) is None
    wrong = {**right, "bytes": [1], "logprob": -1.0}
    assert Reply(logprobs=(wrong,)).written == " is"
    wrong = {**wrong, "bytes": [97]}
    assert words(judge_log_probabilities(Reply(" is", logprobs=(wrong,)))).endswith("'a', not ' is'")


def test_a_call_in_a_form_of_the_model_s_own_is_its_habit_and_no_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fenced = '```json\n{"name": "get_weather", "arguments": {"location": "Paris"}}\n```'
    ctx = asked(lambda _: Reply(fenced, "", (), "stop", Usage(9, 9)), monkeypatch, tool_parser="hermes")
    unread = tool_call.run(ctx)
    assert verdict(unread) == "fail configuration"  # until the stages show that no parser reads this form
    assert isinstance(unread, Fail)
    habit = cause.of_the_model(unread, ctx)
    row = of_ability(ProbeRow(tool_call.name, "", habit, ability=tool_call.ability))
    assert (verdict(row.outcome), row.outcome.remedy) == ("not-shown model", None)
    assert fenced.splitlines()[1] in words(row.outcome)
    report = Report({}, "", {}, (row, ProbeRow("health", "", Pass(as_reason("up")))))
    assert (report.passed, report.abilities["tools"]["shown"]) == (True, 0)
