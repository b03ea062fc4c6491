"""``importer report``: documents with their runs, formats, and what cannot be meant."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importer.document import schema
from importer.document.store import Store
from importer.reports import FORMATS, html, junit, terminal
from importer.reports.report_model import run, sheet
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Pass, Stage
from tests.cli.test_asking import WRITTEN
from tests.commandline import Desk, desk
from tests.facts import as_reason
from tests.reporting import ALL, RECEIPT, looked_at, report, stored, told

__all__ = ["desk"]


def test_a_part_and_runs_on_several_engines_are_kept_apart(desk: Desk) -> None:
    part = report(ALL[1], partial={"probes": ["tool-call"], "against": None})
    found = sheet(stored(desk, report(*ALL), report(ALL[0], engine="vllm", version="0.32.0"), part))
    assert [(run.label, run.state) for run in found.runs] == [
        ("vllm 0.32.0", "passed"), ("mlx 1.0", "failed"), ("mlx 1.0", "partial"),
    ]  # fmt: skip
    assert found.validation == "passed"
    assert found.validating == ["health", "tool-call", "message-forms", "answer-ends"]
    text = terminal.write(found)
    assert re.search(r"probe +vllm 0.32.0 +mlx 1.0\n", text)
    assert re.search(r"tool-call +fail\n", text)
    assert "Only a part, asked of mlx 1.0:" in text
    assert text.index("What did not pass on mlx 1.0") < text.index("→ Set tool_parser:hermes")
    suites = ElementTree.fromstring(junit.write(found)).findall("testsuite")
    assert [s.get("name") for s in suites] == [
        "chat on vllm 0.32.0", "chat on mlx 1.0", "chat on mlx 1.0 (a part, not its validation)",
    ]  # fmt: skip


def test_junit_tells_blame_mend_and_exchanges(desk: Desk) -> None:
    suite = ElementTree.fromstring(junit.write(sheet(stored(desk, report(*ALL))))).find("testsuite")
    assert suite is not None
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    failure, error = cases["tool-call"].find("failure"), cases["message-forms"].find("error")
    assert failure is not None
    assert error is not None
    change = "Set tool_parser:hermes in options: it reads what the template writes."
    assert failure.get("message") == f"no call [configuration] Remedy: {change} (not tried)"
    assert failure.get("type") == "configuration"
    assert "the lesson: lesson of tool-call" in str(failure.text)
    assert (error.get("message"), error.get("type")) == ("it forgot [model]", "model")
    skipped = cases["answer-ends"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "the engine does not offer: stop"
    assert "POST /v1/chat/completions → 200" in str(cases["health"].findtext("system-out"))
    properties = {p.get("name"): p.get("value") for p in suite.findall("properties/property")}
    assert properties["engine.version"] == "1.0"
    assert properties["review"] == "approved"
    assert suite.get("timestamp") == "2026-01-02T03:04:05"


def test_a_run_of_other_data_is_stale_and_no_test_of_ci(desk: Desk) -> None:
    found = sheet(stored(desk, report(*ALL)))
    path = desk.folder / "models" / "chat.yaml"
    path.write_text(path.read_text().replace("max_tokens: 1024", "max_tokens: 1000") + "debug: true\n")
    stale = sheet(Store(desk.folder / "models").load("chat"))
    assert (found.runs[0].state, stale.runs[0].state, stale.validation) == ("failed", "stale", "stale")
    ran = desk("report", "chat", "--format", "junit")
    assert (ran.code, ran.out) == (5, "")
    assert "was never run" in ran.err
    assert "other data than the document has now" in html.write(stale)


def test_json_fits_its_schema(desk: Desk) -> None:
    stored(desk, report(*ALL), report(ALL[0], engine="vllm"))
    data = json.loads(desk("report", "chat", "--json").out)
    schema.check("validation", data, "stdout")
    assert [run["counts"]["fail"] for run in data["runs"]] == [0, 1]
    assert json.loads(desk("report", "chat", "--format", "json").out) == data


def test_the_format_follows_from_the_files_ending(desk: Desk) -> None:
    stored(desk, report(*ALL))
    for name, found in FORMATS.items():
        path = desk.folder / f"out{found.ending}"
        assert desk("report", "chat", "--output", path).code == 0
        assert desk("report", "chat", "--output", path).code == 0  # over the last one
        assert path.read_text() == found.write(sheet(stored(desk))), name
    assert desk("report", "chat", "--format", "html", "--output", "page").code == 0
    assert (desk.folder / "page").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["report"], 2, "is required"),
        (["report", "chat", "--compare", "none"], 5, "There is no document 'none'"),
        (["report", "chat", "--compare", "chat"], 5, "was never run"),
        (["report", "chat", "--compare", "chat", "--format", "html"], 2, "terminal or json"),
        (["report", "nobody"], 5, "There is no document 'nobody'"),
        (["report", "chat", "--output", "a.pdf"], 2, "No report is known by the ending of a.pdf"),
        (["report", "chat", "--output", "models"], 2, "is a folder, not a file"),
        (["report", "chat", "--output", "models/chat.yaml"], 2, "is a document or a receipt"),
        (["report", "chat", "--format", "html", "--json"], 2, "contradicts --format html"),
        (["validate", "chat", "--report", "a.pdf"], 2, "No report is known by the ending of a.pdf"),
        (["validate", "chat", "--report", "models/chat.yaml"], 2, "is a document or a receipt"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(desk: Desk, words: list[str], code: int, says: str) -> None:
    path = desk.folder / "models" / "chat.yaml"  # by hand, which takes no import
    path.parent.mkdir()
    path.write_text(WRITTEN)
    before = desk.files()
    ran = desk(*words)
    assert (ran.code, says in ran.err, len(ran.err.splitlines())) == (code, True, 2), ran.err
    assert desk.files() == before


def test_a_document_that_was_never_run_has_a_page_of_its_decisions(desk: Desk) -> None:
    text = "".join(looked_at(html.write(sheet(stored(desk)))).text)
    assert "It was never run." in text
    assert "tool_parser" in text
    assert "validation: never" in desk("report", "chat").out


def test_two_servers_differ_in_an_ability_where_the_intervals_do_not_meet(desk: Desk) -> None:
    for place, (did, asked) in {"own": (35, 35), "provider": (160, 376), "few": (2, 3)}.items():
        figures = {"tools": {"shown": did, "asked": asked, "interval": None}}
        stored(desk, {**report(("a", Pass(as_reason("1")))), "abilities": figures})
        (desk.folder / "models").rename(desk.folder / place)
    ran = desk("report", "provider/chat.yaml", "--compare", "own/chat.yaml")
    assert (ran.code, ran.out.splitlines()[2:]) == (
        1, ["worse: tools: 35/35 (100%) → 160/376 (43%)", "1 worse, 1 alike"],
    )  # fmt: skip
    few = desk("report", "few/chat.yaml", "--compare", "own/chat.yaml", "--json")
    found = json.loads(few.out)
    schema.check("comparison", found, "stdout")
    assert (few.code, [one["way"] for one in found["abilities"]]) == (0, ["alike"])


@given(
    st.fixed_dictionaries(
        {},
        optional={
            key: st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.text(max_size=3))
            for key in ("attribution", "remedy_message", "trials", "interval", "seconds", "log", "exchanges")
        },
    )
)  # fmt: skip
def test_a_receipt_of_another_time_or_hand_is_read_all_the_same(odd: dict[str, Any]) -> None:
    outcome = {"probe": "a", "outcome": "fail", "reason": "b", **odd}
    data = {"digest": "d", "passed": False, "engine": {}, "seconds": {"start": "x"}, "outcomes": [outcome]}
    try:
        schema.check("receipt", {**RECEIPT, "validation": data}, "receipt")
    except Exception:
        return
    found = told(runs=(run(data, "d"),))  # type: ignore[arg-type]
    for form in FORMATS.values():
        assert "b" in form.write(found)


def test_a_comparison_has_worse_better_other_new_and_gone(desk: Desk) -> None:
    good, bad, other = (
        Pass(as_reason("1")),
        Fail(as_reason("x"), Stage.WHOLE),
        Fail(as_reason("y"), Stage.WHOLE),
    )
    unclear, idle = Inconclusive(as_reason("x"), Stage.DRAWN), NotApplicable(as_reason("1"))
    before = report(*zip("abcdefg", (good, bad, bad, good, good, idle, unclear), strict=True))
    after = report(*zip("abcdnfg", (bad, good, other, good, bad, good, bad), strict=True), version="2.0")
    stored(desk, before)
    (desk.folder / "models").rename(desk.folder / "earlier")
    stored(desk, after)
    worse = desk("report", "chat", "--compare", "earlier/chat.yaml", "--json")
    found = json.loads(worse.out)
    schema.check("comparison", found, "stdout")
    assert {one["probe"]: one["way"] for one in found["outcomes"]} == {
        "a": "worse", "b": "better", "c": "other", "e": "gone", "n": "new", "f": "other", "g": "worse",
    }  # fmt: skip
    assert (worse.code, found["worse"], found["alike"]) == (1, 2, 1)
    assert (found["before"]["version"], found["after"]["version"]) == ("1.0", "2.0")
    text = desk("report", "--compare", "earlier/chat.yaml", "chat").out
    assert "before: chat on mlx 1.0" in text.splitlines()[0]
    assert "worse: a: pass → fail\n    after: x\n" in text
    same = desk("report", "chat", "--compare", "chat")
    assert (same.code, same.out.splitlines()[-1]) == (0, "0 worse, 7 alike")
