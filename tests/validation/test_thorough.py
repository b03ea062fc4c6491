"""The figures of a thorough run: until an interval is narrow, and on from where a run was stopped."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from importer import kept
from importer.progress import silent
from importer.validation import experiments, thorough
from importer.validation.errors import ServerUnreachable
from importer.validation.outcome import ProbeRow, differs, holding, wilson
from importer.validation.reply import Reply, ToolCall
from importer.validation.served_engine import Controls
from importer.validation.thorough import PLACES, figures, narrow
from tests.judging import asked, said

ROWS = [ProbeRow("tool-call", "", holding("a call"), ability="tools")]
OF = {"name": "m"}


class Stopped(Exception):
    """The end of a process."""


def called(body: dict[str, Any]) -> Reply:
    """A call for the place of the question; for one half of the places the call is broken."""
    text = str(body["messages"][-1]["content"])
    place = next(place for place in PLACES if place in text)
    arguments = json.dumps({"location": place})
    broken = PLACES.index(place) % 2 == 0
    call = ToolCall(0, "id0", "get_weather", arguments[:-2] if broken else arguments)
    return Reply(tool_calls=(call,), finish_reason="tool_calls")


def test_an_ability_is_asked_until_its_interval_is_narrow(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = asked(lambda _: said("I cannot."), monkeypatch, tool_parser="x")
    assert figures(ctx, ROWS, OF, silent) == {}
    steps: list[str] = []
    found = figures(replace(ctx, thorough=True), ROWS, OF, steps.append)
    assert found == {"tools": (0, 40)}  # 35 are enough, and eight are asked at a time
    assert steps[0].startswith("tools: 0 of 0")
    half = figures(replace(asked(called, monkeypatch, tool_parser="x"), thorough=True), ROWS, OF, silent)
    assert half["tools"][0] == half["tools"][1] // 2  # a broken answer is a figure, and no fault
    assert narrow(*half["tools"])
    assert wilson(*half["tools"]) == pytest.approx((0.45, 0.55), abs=0.001)


def test_a_run_goes_on_where_one_was_stopped(importer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def answer(body: dict[str, Any]) -> Reply:
        sent.append(str(body["messages"][-1]["content"]))
        return called(body)

    def stop(step: str) -> None:
        if step.startswith("tools: 12 of 24"):
            raise Stopped

    ctx = replace(asked(answer, monkeypatch, tool_parser="x"), thorough=True)
    with pytest.raises(Stopped):
        figures(ctx, ROWS, OF, stop)
    first = {*sent}
    assert len(first) == 24
    sent.clear()
    assert figures(ctx, ROWS, OF, silent)["tools"] == (192, 384)
    assert len(sent) == 360
    assert first.isdisjoint(sent)
    assert [*kept.place("thorough").iterdir()] == []  # the next run asks anew
    with pytest.raises(Stopped):
        figures(ctx, ROWS, OF, stop)
    sent.clear()
    figures(ctx, ROWS, {"name": "another"}, silent)
    assert len(sent) == 384


def test_an_exchange_that_fails_is_no_answer_of_the_model(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def answer(body: dict[str, Any]) -> Reply:
        sent.append(str(body["messages"][-1]["content"]))
        if len(sent) > alive or len(sent) in lost:
            raise ServerUnreachable("it is gone")
        return called(body)

    ctx = replace(asked(answer, monkeypatch, tool_parser="x"), thorough=True)
    alive, lost = 20, (3, 7)
    found = figures(ctx, ROWS, OF, silent)["tools"]
    assert found[1] == 18  # those that came
    assert len(sent) == 32  # of eight at a time, none came
    sent.clear()
    alive, lost = 0, ()
    assert figures(ctx, ROWS, OF, silent) == {}  # the figures of the probes stay


def test_seconds_that_starts_without_a_setting_may_take_are_left(
    importer_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = replace(asked(called, monkeypatch, tool_parser="x"), thorough=True)
    short = replace(ctx, client=replace(ctx.client, deadline=time.monotonic() + experiments.SECONDS))
    assert figures(short, ROWS, OF, silent, experiments.SECONDS)["tools"] == (4, 8)
    assert figures(short, ROWS, OF, silent)["tools"] == (192, 384)  # it goes on
    lost = ProbeRow("tool-call", "", differs("a call", None, "one"))
    controls = Controls(lambda *_: nullcontext(None), (), (), 1.0)
    assert experiments.spared([lost], controls) == experiments.SECONDS
    assert experiments.spared([lost], None) == experiments.spared(ROWS, controls) == 0


def test_questions_differ() -> None:
    for ability in thorough._of_tools(), thorough._of_none(), thorough._of_results():
        assert len({json.dumps(one.messages) for one in ability}) == len(ability) == thorough.MOST
