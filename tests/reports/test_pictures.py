"""Pictures of reports and of the page: their numbers, whatever a receipt has in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.reports import html, pictures
from importer.reports.pictures.figures import PastValidation
from importer.reports.pictures.shapes import LABEL, SPAN, Picture
from importer.reports.report_model import ProbeOutcome, Run
from tests.reporting import looked_at, told

GIB = 2**30
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIT: dict[str, Any] = {
    "device": {"name": "h100-80g", "memory": 80 * GIB}, "budget": 72 * GIB, "message": "it fits",
    "estimate": {"terms": [
        {"part": "weights", "low": 30 * GIB, "likely": 30 * GIB, "high": 32 * GIB, "why": "files"},
        {"part": "kv cache", "low": 10 * GIB, "likely": 10 * GIB, "high": 10 * GIB, "why": "tokens"},
    ]},
    "plans": [
        {"device": "h100-80g", "devices": 2, "tensor_parallel": 2, "tokens_per_second": 4000, "meets": True},
        {"device": "h100-80g", "devices": 1, "tensor_parallel": 1, "tokens_per_second": 1000},
    ],
}  # fmt: skip
RUN = Run(
    "vllm", "0.33.0", "failed", False, "2026-01-02T03:04:05+00:00", "sha256:0",
    {"start": 30.0, "probes": 10.0}, (ProbeOutcome("a", "pass", "ok"), ProbeOutcome("b", "fail", "no")),
    fit={"weights": {"predicted": 20 * GIB, "reported": 40 * GIB, "error": 0.5}},
    speed={"tokens_per_second": 41.0, "first_token_seconds": 0.3},
)  # fmt: skip


def named(found: tuple[Picture, ...], name: str) -> Picture:
    return next(one for one in found if one.name == name)


def test_parts_of_memory_are_stacked_to_scale_with_the_limit_of_the_device() -> None:
    model = told(fit=FIT, runs=(RUN,))
    one = named(pictures.of_memory(model), "memory")
    likely = [s for s in one.shapes if s.shape == "rect" and s.kind in ("c1", "c2") and s.height == 16][2:4]
    assert [(s.kind, s.x) for s in likely] == [("c1", LABEL), ("c2", LABEL + SPAN * 30 / 80)]
    assert likely[0].width == pytest.approx(SPAN * 30 / 80 - 1)
    (limit,) = (s for s in one.shapes if s.kind == "limit" and s.shape == "rect")
    assert limit.x + 1 == LABEL + SPAN * 72 / 80
    assert "40.0 GiB likely, 40.0 GiB to 42.0 GiB of 72.0 GiB" in one.label
    assert one.rows[-1] == ("in all", "40.0 GiB", "40.0 GiB", "42.0 GiB", "")
    pair = named(pictures.of_memory(model), "measured")
    assert pair.rows == (("weights", "vllm 0.33.0", "20.0 GiB", "40.0 GiB", "-50%"),)
    assert [s.width for s in pair.shapes if s.shape == "rect"] == [SPAN / 2 - 1, SPAN - 1]
    plans = named(pictures.of_memory(model), "plans")
    assert [row[0] for row in plans.rows] == ["2 × h100-80g, TP 2", "1 × h100-80g"]


def test_a_small_model_is_drawn_once_more_by_itself() -> None:
    small = {**FIT, "estimate": {"terms": [{"part": "weights", "low": 1, "likely": GIB, "high": 2 * GIB}]}}
    assert [one.name for one in pictures.of_memory(told(fit=small, runs=()))][:2] == [
        "memory",
        "memory-parts",
    ]


def test_runs_stand_side_by_side() -> None:
    other = replace(RUN, engine="sglang", seconds={"start": 60.0, "probes": 20.0}, speed={})
    found = pictures.of_runs((RUN, other))
    assert [one.name for one in found] == ["outcomes", "times", "speed"]
    assert named(found, "outcomes").label.startswith("vllm 0.33.0 (failed): 1 of 2 passed; sglang")
    widths = [s.width for s in named(found, "times").shapes if s.kind == "start"]
    assert [one + 1 for one in widths] == [pytest.approx(SPAN * 30 / 80, abs=0.1), SPAN * 60 / 80]
    assert named(found, "speed").rows[0][2:] == ("41.0", "0.30 s")


def test_the_worst_probes_come_first_and_columns_are_even() -> None:
    names = [(f"p{n}", "pass") for n in range(50)] + [
        ("bad", "fail"),
        ("odd", "inconclusive"),
        ("off", "not-applicable"),
    ]
    outcomes = tuple(ProbeOutcome(name, outcome, "") for name, outcome in names)
    rows = pictures.rows((replace(RUN, outcomes=outcomes), RUN))
    assert [row.probe for row in rows][:3] == ["bad", "b", "odd"]
    assert [len(column) for column in pictures.columns(rows)] == [19, 19, 17]
    assert rows[0].outcome(2) is None


def test_history_has_a_column_for_each_validation() -> None:
    past = [
        PastValidation("vllm 1", "2026-01-01T00:00:00+00:00", {"pass": 3, "fail": 1}, 50.0, 40.0, 0.3),
        PastValidation("vllm 2", "2026-01-02T00:00:00+00:00", {"pass": 4}, 25.0, 80.0, 0.2),
        PastValidation("vllm 2", "2026-01-03T00:00:00+00:00", error="stopped"),
    ]
    (one,) = pictures.history(past)
    heights = {
        kind: [s.height for s in one.shapes if s.kind == kind and s.shape == "rect"]
        for kind in ("pass", "rate")
    }
    assert heights == {"pass": [57.0, 76.0], "rate": [38.0, 76.0]}
    assert [s.height for s in one.shapes if s.kind == "error"] == [76.0]
    assert [row[:4] for row in one.rows][-1] == ("2026-01-01 00:00 UTC", "vllm 1", "3", "4")
    assert "ended by an error (stopped)" in one.label
    assert pictures.history([]) == []


@given(ODD, ODD)
def test_figures_of_any_kind_make_a_page_that_is_whole(fit: Any, speed: Any) -> None:
    estimate = {"terms": [fit, {"part": fit, "low": speed, "likely": speed, "high": 3}], "total": fit}
    figures = {"device": fit, "budget": speed, "plans": [fit, {"tokens_per_second": speed, "why": fit}]}
    run = replace(
        RUN, fit={"weights": fit, "x": {"predicted": speed, "reported": fit}},
        speed={"tokens_per_second": speed, "first_token_seconds": fit},
    )  # fmt: skip
    model = told(fit={**figures, "estimate": estimate}, runs=(run,))
    live = looked_at(html.write(model))
    assert live.open == []
    for one in (*pictures.of_memory(model), *pictures.of_runs(model.runs)):
        for shape in one.shapes:
            assert 0 <= shape.x <= one.width
            assert 0 <= shape.x + shape.width <= one.width + 1
            assert 0 <= shape.y + shape.height <= one.height


def test_a_report_has_the_pictures_and_their_tables() -> None:
    page = html.write(told("<b>x</b>", fit=FIT, runs=(RUN,)))
    assert "<script" not in page
    assert page.count('role="img"') == 6
    for words in (
        "Memory of one device",
        "72.0 GiB to fill",
        "Predicted and measured",
        "4,000 tokens/s",
        "Outcomes",
    ):
        assert words in page
    assert page.count('<table class="matrix">') == 1
