"""Figures of reports and of the page, whatever a receipt has in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.reports import html, pictures
from importer.reports.pictures import GAP, LIMIT, Figures, device_title
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
        {"device": "2xh200", "devices": 2, "tensor_parallel": 2, "tokens_per_second": 4000, "meets": True},
        {"device": "2xh200", "devices": 2, "tensor_parallel": 1, "tokens_per_second": 1000},
    ],
}  # fmt: skip
RUN = Run(
    "vllm", "0.33.0", "failed", False, "2026-01-02T03:04:05+00:00", "sha256:0",
    {"start": 30.0, "probes": 10.0}, (ProbeOutcome("a", "pass", "ok"), ProbeOutcome("b", "fail", "no")),
    fit={"weights": {"predicted": 20 * GIB, "reported": 40 * GIB, "error": 0.5}},
    speed={"tokens_per_second": 41.0, "first_token_seconds": 0.3},
)  # fmt: skip


def named(found: tuple[Figures, ...], name: str) -> Figures:
    return next(one for one in found if one.name == name)


def test_parts_of_memory_are_stacked_to_scale_with_the_limit_of_the_device() -> None:
    model = told(fit=FIT, runs=(RUN,))
    one = named(pictures.of_memory(model), "memory")
    assert [(bar.label, bar.text) for bar in one.bars] == [("low, likely", "40.0 GiB"), ("high", "42.0 GiB")]
    ground, weights, cache, limit = one.bars[0].pieces
    assert [(p.kind, p.x) for p in (weights, cache)] == [("c1", 0), ("c2", 37.5)]
    assert weights.width == 37.5 - GAP
    assert (limit.kind, limit.x + LIMIT) == ("limit", 90)
    assert ground.width == 100
    assert (
        one.note
        == one.label
        == ("40.0 GiB likely, 40.0 GiB to 42.0 GiB of 72.0 GiB that an engine may fill on H100-80G")
    )
    assert [entry.name for entry in one.legend] == [
        "weights 30.0 GiB", "kv cache 10.0 GiB", "limit: 72.0 GiB to fill",
    ]  # fmt: skip
    assert one.rows[-1] == ("in all", "40.0 GiB", "40.0 GiB", "42.0 GiB", "")
    pair = named(pictures.of_memory(model), "measured")
    assert pair.rows == (("weights", "vllm 0.33.0", "20.0 GiB", "40.0 GiB", "-50%"),)


def test_a_plan_is_named_for_people_and_its_rate_is_called_a_bound() -> None:
    one = named(pictures.of_memory(told(fit=FIT, runs=())), "plans")
    assert [(row[0], row[1], row[6]) for row in one.rows] == [
        ("2 × H200 · TP 2", "chosen", "≤ 4,000"),
        ("2 × H200", "", "≤ 1,000"),
    ]
    assert "upper bound (calculated)" in one.note
    assert one.note.startswith("Chosen without a goal: the widest tensor parallelism. ")
    asked = named(pictures.of_memory(told(fit={**FIT, "aim": {"goal": "latency"}}, runs=())), "plans")
    assert asked.note.startswith("Chosen for the goal latency. ")
    assert [device_title(name) for name in ("8xh200", "rtx4090", "m3-max-64g")] == [
        "8 × H200", "RTX4090", "M3-MAX-64G",
    ]  # fmt: skip


def test_one_value_is_no_table() -> None:
    alone = told(fit={"plans": FIT["plans"][:1]}, runs=(RUN,))
    assert [one.name for one in pictures.of_memory(alone)] == ["measured"]
    assert pictures.of_runs((RUN,)) == ()


def test_a_small_model_is_drawn_once_more_by_itself() -> None:
    small = {**FIT, "estimate": {"terms": [{"part": "weights", "low": 1, "likely": GIB, "high": 2 * GIB}]}}
    assert [one.name for one in pictures.of_memory(told(fit=small, runs=()))][:2] == [
        "memory",
        "memory-parts",
    ]


def test_runs_stand_side_by_side() -> None:
    speed = {"tokens_per_second": 82.0, "first_token_seconds": 0.6}
    off = ProbeOutcome("c", "not-applicable", "the engine does not offer it")
    other = replace(
        RUN,
        engine="sglang",
        outcomes=(*RUN.outcomes, off),
        seconds={"start": 60.0, "probes": 20.0},
        speed=speed,
    )
    (found,) = pictures.of_runs((RUN, other))
    assert [dict(zip(found.heads, row, strict=True)) for row in found.rows] == [
        {"engine": f"{engine} 0.33.0", "state": "failed", "when": "2026-01-02 03:04 UTC", "pass": "1",
         "fail": "1", "inconclusive": "0", "not shown": "0", "not applicable": lost, "start": start,
         "probes": probes, "stop": "", "in all": spent, "tokens/s": rate, "first token": first}
        for engine, lost, start, probes, spent, rate, first in (
            ("vllm", "0", "30.0 s", "10.0 s", "40.0 s", "41.0", "0.30 s"),
            ("sglang", "1", "60.0 s", "20.0 s", "80.0 s", "82.0", "0.60 s"),
        )
    ]  # fmt: skip


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


PROOF = {
    "engine": "vllm", "version": "0.33.0",
    "verdicts": {"tool_parser": [
        {"parser": "hermes", "reads": True, "passed": ["one", "two"], "failed": {}},
        {"parser": "json", "reads": True, "passed": ["one"], "failed": {"two": "read no call"}},
        {"parser": "granite", "reads": True, "passed": ["one"], "failed": {"two": "raised"}},
        {"parser": "xml", "passed": [], "failed": {"one": "read no call"}, "forbidden": "'<'"},
    ]},
}  # fmt: skip


def test_the_map_of_a_proof_has_the_chosen_parser_first_and_like_ones_in_one_row() -> None:
    (one,) = pictures.proof_maps(PROOF, {"tool_parser": "json"})
    assert (one.of, one.parsers, one.cases) == ("vllm 0.33.0", 4, ("one", "two"))
    assert [(row.parsers, row.cells) for row in one.rows] == [
        (("json", "granite"), ("pass", "fail")),
        (("hermes",), ("pass", "pass")),
        (("xml",), ("fail", "not-applicable")),
    ]
    assert [row.lost for row in one.rows] == [
        "two: read no call", "", "one: read no call; cannot be written: '<'",
    ]  # fmt: skip
    page = html.write(told(proof=PROOF, decisions={"tool_parser": {"value": "json", "why": []}}))
    table = looked_at(page).text
    assert "one: read no call; cannot be written: '<'" in table
    assert table.index("json, granite") < table.index("hermes")
    assert pictures.proof_maps(None, {}) == ()


@pytest.mark.slow
@given(ODD)
def test_a_proof_of_any_kind_makes_a_page_that_is_whole(odd: Any) -> None:
    proof = {"engine": odd, "verdicts": {"tool_parser": [odd, {"parser": odd, "passed": odd, "failed": odd}]}}
    assert looked_at(html.write(told(proof=proof))).open == []


@pytest.mark.slow
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
        for piece in (piece for bar in one.bars for piece in bar.pieces):
            assert 0 <= piece.x <= piece.x + piece.width <= 101


def test_a_report_has_the_bar_of_memory_and_tables() -> None:
    page = html.write(told("<b>x</b>", fit=FIT, runs=(RUN, replace(RUN, engine="sglang"))))
    assert "<script" not in page
    assert page.count('role="img"') == 1
    for words in (
        "Memory of one device",
        "72.0 GiB to fill",
        "Predicted and measured",
        "≤ 4,000",
        "Side by side",
    ):
        assert words in page
    assert page.count('<table class="matrix">') == 1
