"""The frame of a validation: trials and intervals, order and time, requests that are kept, rendering."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from importer import demo
from importer.app.local_evidence import rendering
from importer.hub import local
from importer.validation.client import MAX_BODY, Client, Exchange, bounded
from importer.validation.context import Context, holds
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations, always
from importer.validation.outcome import Inconclusive, NotApplicable, Outcome, Pass, Stage, wilson
from importer.validation.probe import Probe, ProbeOptions, Run
from importer.validation.probes.ends import _long_prompt
from importer.validation.probes.message_forms import _in_a_row, _system
from importer.validation.probes.reasoning import is_silent
from importer.validation.probes.server import health
from importer.validation.prompts import GREETING, TRIP, WEATHER, WEATHER_ANSWERED, Prompt
from importer.validation.rendering import PromptRendering
from importer.validation.reply import Reply
from importer.validation.run import probe, validate
from tests.facts import as_reason
from tests.framing import context, repository
from tests.validation.test_validation_client import BODY, DOCUMENT, Running, http, say, server


@pytest.mark.parametrize(
    ("agreed", "trials", "low", "high"),  # as statsmodels' proportion_confint(method="wilson") gives them
    [
        (1, 1, 0.2065, 1.0),
        (3, 3, 0.4385, 1.0),
        (0, 3, 0.0, 0.5615),
        (2, 3, 0.2077, 0.9385),
        (50, 100, 0.4038, 0.5962),
    ],
)
def test_wilsons_interval(agreed: int, trials: int, low: float, high: float) -> None:
    assert wilson(agreed, trials) == pytest.approx((low, high), abs=5e-5)


def test_every_outcome_has_its_interval_and_what_was_not_asked_has_none() -> None:
    assert (Pass(as_reason("x")).agreeing, Pass(as_reason("x")).interval) == (1, wilson(1, 1))
    assert Inconclusive(as_reason("x"), Stage.DRAWN, trials=3, agreed=2).interval == wilson(2, 3)
    assert NotApplicable(as_reason("x")).interval is None


def test_trials_are_counted_with_those_that_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["no", "no", "yes"])
    monkeypatch.setattr(Client, "chat", lambda *_: Reply(next(answers), finish_reason="stop"))

    def judge(reply: Reply) -> Outcome:
        return Pass(as_reason("x")) if reply.content == "yes" else Inconclusive(as_reason("x"), Stage.DRAWN)

    outcome = context().judged(GREETING, judge)
    assert (outcome.outcome, outcome.trials, outcome.agreeing) == ("pass", 3, 1)


def test_what_measures_runs_after_the_others_and_with_nothing_beside_it() -> None:
    spans: list[tuple[str, float, float]] = []
    names = ("one", "first", "two", "second", "three")

    def run(_ctx: Context, name: str) -> Outcome:
        begun = time.monotonic()
        time.sleep(0.05)
        spans.append((name, begun, time.monotonic()))
        return Pass(as_reason("ran"))

    probes = [Probe(n, ".", always, partial(run, name=n), alone=n in ("first", "second")) for n in names]
    with server(say(http(BODY))) as url:
        report = validate(DOCUMENT, Running(url), options=ProbeOptions([health, *probes]))
    assert [row.probe for row in report.rows] == ["health", *names, "stops-cleanly"]
    assert [name for name, _, _ in sorted(spans, key=lambda s: s[1])][3:] == ["first", "second"]
    times = {name: (begun, ended) for name, begun, ended in spans}
    assert max(times[n][1] for n in ("one", "two", "three")) <= times["first"][0]
    assert times["first"][1] <= times["second"][0]
    assert all(row.seconds >= 0.05 for row in report.rows if row.probe in names)


def test_long_requests_are_kept_in_part() -> None:
    assert bounded({"messages": [{"content": "x" * 100}]}) == {"messages": [{"content": "x" * 100}]}
    kept = bounded({"messages": [{"role": "user", "content": "x" * 100_000}], "max_tokens": 3})
    assert kept is not None
    assert (kept["max_tokens"], kept["messages"][0]["role"]) == (3, "user")
    assert len(json.dumps(kept)) < MAX_BODY


@pytest.mark.parametrize(("says", "silent"), [({"enable_thinking": False}, True), ({}, False)])
def test_a_document_may_switch_thinking_off_by_itself(says: dict[str, bool], silent: bool) -> None:
    with rendering(demo.MODEL, {"chat_template_kwargs": says}) as render:
        assert is_silent(context(render)) is silent
    assert not is_silent(context(None))


def test_prompts_are_rendered_as_engines_render_them() -> None:
    with rendering(demo.MODEL, {"chat_template_kwargs": {"enable_thinking": False}}) as render:
        asked = render(WEATHER)
        assert asked is not None
        assert "get_weather" in asked.partition("Paris")[0]
        assert asked.endswith("<think>\n\n</think>\n\n")
        thinking = render(Prompt("x", GREETING.messages, switches={"enable_thinking": True}))
        assert thinking is not None
        assert thinking.endswith("<|im_start|>assistant\n")
        answered = render(WEATHER_ANSWERED)
        assert answered is not None
        assert '{"location": "Paris"}' in answered  # an object, and not the text of one
        assert "Zo\\u00eb" not in (render(TRIP) or "")


def test_without_a_template_nothing_is_rendered(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with PromptRendering(local.resolve("x", tmp_path)) as render:
        assert (render(GREETING), render.digest, render.bos) == (None, "", "<s>")
        assert context(render).raw(GREETING) is None
    assert context().raw(GREETING) is None


def test_a_template_with_and_without_tools(tmp_path: Path) -> None:
    named = [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "with {{ tools | length }}"},
    ]
    with rendering(repository(tmp_path, "", chat_template=named, bos_token="<s>"), {}) as render:
        assert (render(GREETING), render(WEATHER), render.bos) == ("plain", "with 1", "<s>")


@pytest.mark.parametrize(
    ("written", "shown", "fits"),
    [
        ("<think>\nSum.\n</think>\n\nIt is four.<|im_end|>", "It is four.", True),
        ("Let me see. <tool_call>{}</tool_call> Done.", "Let me see.\n\nDone.", True),
        ("<tool_call>{}</tool_call>", "", True),
        ("<tool_call>{}</tool_call>", "I cannot look that up.", False),
        ("", "", False),
    ],
)
def test_what_is_shown_must_be_left_of_what_was_written(written: str, shown: str, fits: bool) -> None:
    assert holds(written, shown) is fits


def test_of_many_exchanges_the_first_and_the_last_are_kept() -> None:
    def run(ctx: Context) -> Outcome:
        ctx.log.extend(Exchange("POST", f"/{number}") for number in range(100))
        return Pass(as_reason("done"))

    with server(say(http(BODY))) as url:
        busy = Probe("busy", ".", always, run)
        (row,) = probe(Context(Expectations(), "m", Client(url)), [busy], lambda _: None)
    paths = [e["path"] for e in row.outcome.evidence]
    assert (len(paths), paths[0], paths[19], paths[20], paths[-1]) == (40, "/0", "/19", "/80", "/99")


@pytest.mark.parametrize(
    ("status", "plain", "expected"),
    [
        (400, 200, "pass"),
        (404, 200, "pass"),  # how mlx-lm says that a template refused
        (404, 404, "fail"),  # nothing is served under that name
        (401, 401, "fail"),
        (500, 200, "fail"),
    ],
)
@pytest.mark.parametrize("asked", [_system, _in_a_row, _long_prompt])
def test_a_refusal_is_clean_where_it_is_of_this_request_alone(
    monkeypatch: pytest.MonkeyPatch, asked: Run, status: int, plain: int, expected: str
) -> None:
    def chat(_client: Client, body: dict[str, object], *_: object, **__: object) -> Reply:
        told = plain if body["messages"] == [*GREETING.messages] else status
        if told != 200:
            raise RequestRefused(told, "no")
        return Reply("Hello!", finish_reason="stop")

    monkeypatch.setattr(Client, "chat", chat)
    asking = replace(context(), promise=Expectations(context=16))
    try:
        outcome = asked(asking).outcome
    except RequestRefused as refused:
        outcome = refused.outcome().outcome
    assert outcome == expected
