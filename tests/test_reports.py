"""Reports: one validation as text, JSON, JUnit XML and a page, whatever was written into it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from importer.document import schema
from importer.document.receipt import Receipt, parse
from importer.document.store import Store
from importer.reports import FORMATS, as_json, html, junit, terminal
from importer.reports.compare import compare
from importer.reports.html.markup import ATTRIBUTES, ELEMENTS, Markup, el, join, verbatim
from importer.reports.sheet import Found, Run, Sheet, of_receipt, sheet
from importer.reports.text import duration, moment
from importer.validation.outcome import Fail, Inconclusive, NotApplicable, Outcome, Pass
from importer.validation.report import Report, Row
from tests.commandline import Desk, desk
from tests.test_asking import WRITTEN

__all__ = ["desk"]
LIVE = (
    "<script>document.title = 'run'</script>",
    "</pre></details><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)><a href='javascript:alert(1)'>",
    "</style><style>@import 'http://127.0.0.1:9/x'</style>",
    "--><!-- ]]> <![CDATA[ &amp; &lt; ${x} {{ x }}",
    "\x1b]0;title\x07\x1b[2J\x00\x08\r\u202e\ufffe\ud800",
    "[bold red]markup[/] :smile:",
)
EXCHANGE = {
    "method": "POST", "path": "/v1/chat/completions", "request": {"model": "m"}, "status": 200, "body": "{}",
    "seconds": 0.1, "error": None,
}  # fmt: skip


def report(
    *outcomes: tuple[str, Outcome], engine: str = "mlx", version: str = "1.0", **more: Any
) -> dict[str, Any]:
    """What a receipt keeps of a run."""
    rows = tuple(Row(name, f"lesson of {name}", outcome, 0.25, "ERROR x" if isinstance(outcome, Fail) else "")
                 for name, outcome in outcomes)  # fmt: skip
    head = {"name": engine, "version": version}
    seconds = {"start": 2.0, "probes": 1.0, "stop": 0.5}
    return Report(head, "2026-01-02T03:04:05+00:00", seconds, rows, **more).to_json()


ALL = (
    ("health", Pass("up", evidence=(EXCHANGE,))),
    (
        "tool-call",
        Fail(
            "no call", "configuration", "Set tool_parser:hermes in options.", trials=3, evidence=(EXCHANGE,)
        ),
    ),
    ("history", Inconclusive("it forgot", "model", trials=3, agreed=2)),
    ("stop-strings", NotApplicable("the engine does not offer: stop")),
)


def told(text: str = "", **changes: Any) -> Sheet:
    """A sheet with ``text`` wherever something of outside stands."""
    exchange = {**EXCHANGE, "body": text, "error": text, "request": {"messages": [text], text: text}}
    found = tuple(
        Found(
            name + text,
            outcome,
            text or "said",
            "model",
            text,
            3,
            2,
            (0.2, 0.9),
            0.5,
            text,
            text,
            (exchange,),
        )
        for name, outcome in (("a", "pass"), ("b", "fail"), ("c", "inconclusive"), ("d", "not-applicable"))
    )
    first = Run(
        f"mlx{text}", text or "1", "failed", False, text, "sha256:0", {"start": 1.0, text: 2.0}, found
    )
    part = replace(first, state="partial", partial={"probes": [text], "against": text}, found=found[:1])
    decision = {
        "value": text,
        "status": text,
        "why": [text],
        "overruled": [{"value": text, "source": text, "why": text}],
    }
    evidence = {"rule": text, "key": "kind", "value": [text], "source": text, "says": text, "quote": text}
    made = Sheet(
        f"demo{text}", text, text, "sha256:0", "approved", "failed", text,
        (first, replace(first, engine="vllm"), part),
        {"by": text, "at": text, "note": text}, {"kind": decision, text: decision}, (evidence,),
    )  # fmt: skip
    return replace(made, **changes)


class Live(HTMLParser):
    """Everything in a page that loads, runs or sends, and what is not closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name.lower(): value or "" for name, value in attrs}
        if tag not in {e.lower() for e in ELEMENTS} or set(names) - {a.lower() for a in ATTRIBUTES}:
            self.found.append(f"<{tag} {names}>")
        if not names.get("href", "#").startswith("#"):
            self.found.append(names["href"])
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.found.append(f"</{tag}>")

    def handle_comment(self, data: str) -> None:
        self.found.append(f"<!--{data}")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def looked_at(page: str) -> Live:
    live = Live()
    live.feed(page)
    live.close()
    assert (live.found, live.open) == ([], [])
    return live


@given(st.text(max_size=60))
@example("".join(LIVE))
def test_nothing_of_outside_is_live_in_a_page(text: str) -> None:
    page = html.write(told(text))
    live = looked_at(page)
    page.encode()
    assert len(live.open) == 0
    assert page.count("<style>") == page.count("</style>") == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\ud800-\udfff]", page)


@given(st.text(max_size=60))
@example("".join(LIVE))
def test_junit_is_xml_whatever_stands_in_it(text: str) -> None:
    root = ElementTree.fromstring(junit.write(told(text)).encode())
    suites = root.findall("testsuite")
    assert len(suites) == 3
    for suite in suites:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
        for attribute, tag in kinds.items():
            assert suite.get(attribute) == str(sum(case.find(tag) is not None for case in cases))


@given(st.text(max_size=60))
@example("".join(LIVE))
def test_text_steers_no_terminal_and_json_is_escaped(text: str) -> None:
    written = terminal.write(told(text))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", written)
    data = as_json.write(told(text))
    assert data.isascii()
    assert json.loads(data)["runs"][0]["outcomes"][0]["probe"] == f"a{text}"


@pytest.mark.parametrize("text", LIVE)
def test_what_a_model_wrote_is_shown(text: str) -> None:
    if text.isprintable():
        assert text in "".join(looked_at(html.write(told(text))).text)
        assert text in junit.exchange_text({**EXCHANGE, "body": text})


def test_a_page_holds_everything_and_says_it_in_order(desk: Desk) -> None:
    page = html.write(sheet(stored(desk, report(*ALL, engine="vllm", version="0.32.0"))))
    text = "".join(looked_at(page).text)
    at = 0
    for words in (
        "validation ✗ failed", "What did not pass", "Set tool_parser:hermes in options.", "Runs",
        "start 2.00 s, probes 1.00 s", "Probes", "3 of 3, 44–100 %", "Decisions", "Each probe",
        "lesson of tool-call", "ERROR x", "1 raw exchange", "POST /v1/chat/completions → 200", "The document",
        "Written by importer",
    ):  # fmt: skip
        assert words in text[at:], words
        at = text.index(words, at)
    assert "sha256:" in text
    assert "approved" in text
    assert "acme/chat" in text
    assert re.search(r"by .* \(--yes\), \d{4}-\d\d-\d\d \d\d:\d\d UTC", text)
    assert (
        html.write(sheet(stored(desk, report(*ALL, engine="vllm", version="0.32.0")))) == page
    )  # the same bytes


def test_a_pages_policy_names_its_style_and_nothing_else() -> None:
    page = html.write(told())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    directives = dict(d.strip().split(" ", 1) for d in policy[1].replace("&#x27;", "'").split(";"))
    assert directives.pop("style-src").startswith("'sha256-")
    assert directives == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    assert " style=" not in page  # the policy would not let it in


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("script", {}), ("img", {}), ("p", {"onclick": "x"}), ("p", {"style": "x"}), ("a", {"href": "http://a"}),
     ("iframe", {}), ("a", {"href": "javascript:x"}), ("p", {"srcdoc": "x"}), ("link", {}), ("form", {})],
)  # fmt: skip
def test_nothing_live_can_be_built(name: str, attributes: Mapping[str, str]) -> None:
    with pytest.raises(ValueError, match="of ours"):
        el(name, **attributes)
    with pytest.raises(ValueError, match="no markup"):
        verbatim("</style>")


def test_markup_is_escaped_once_and_nested_freely() -> None:
    inner = el("p", "a < b & c", None, [1, (x for x in "de")])
    assert inner == "<p>a &lt; b &amp; c1de</p>"
    assert el("div", inner, class_='"') == f'<div class="&quot;">{inner}</div>'
    assert isinstance(join("<"), Markup)


def stored(desk: Desk, *reports: Mapping[str, Any]) -> Any:
    """A document whose receipt has these runs."""
    if not (desk.folder / "models" / "chat.yaml").exists():
        assert desk("acme/chat", "--yes", "--name", "chat").code == 0
    store = Store(desk.folder / "models")
    digest = store.load("chat").digest
    for one in reports:
        store.amend("chat", lambda receipt, one=one: receipt.with_validation(one, digest))  # type: ignore[misc]
    return store.load("chat")


def test_a_part_and_runs_on_several_engines_are_kept_apart(desk: Desk) -> None:
    part = report(ALL[1], partial={"probes": ["tool-call"], "against": None})
    found = sheet(stored(desk, report(*ALL), report(ALL[0], engine="vllm", version="0.32.0"), part))
    assert [(run.label, run.state) for run in found.runs] == [
        ("vllm 0.32.0", "passed"), ("mlx 1.0", "failed"), ("mlx 1.0", "partial"),
    ]  # fmt: skip
    assert found.validation == "passed"
    assert found.validating == ["health", "tool-call", "history", "stop-strings"]
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
    failure, error = cases["tool-call"].find("failure"), cases["history"].find("error")
    assert failure is not None
    assert error is not None
    assert failure.get("message") == "no call [configuration] Mend: Set tool_parser:hermes in options."
    assert failure.get("type") == "configuration"
    assert "the lesson: lesson of tool-call" in str(failure.text)
    assert (error.get("message"), error.get("type")) == ("it forgot [model]", "model")
    skipped = cases["stop-strings"].find("skipped")
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
        (["report"], 2, "give one document, or two validations"),
        (["report", "chat", "--compare", "chat", "chat"], 2, "give one document, or two validations"),
        (["report", "nobody"], 5, "There is no document 'nobody'"),
        (["report", "chat", "--output", "a.pdf"], 2, "No report is known by the ending of a.pdf"),
        (["report", "chat", "--output", "models"], 2, "it is a folder"),
        (["report", "chat", "--output", "models/chat.yaml"], 2, "does not take the place of a document"),
        (
            ["report", "chat", "--format", "html", "--output", "models/chat.receipt.json"],
            2,
            "not take the place",
        ),
        (["report", "chat", "--format", "pdf"], 2, "invalid choice: 'pdf'"),
        (["report", "chat", "--format", "html", "--json"], 2, "it is not --format html"),
        (["report", "--compare", "chat", "nobody"], 5, "There is no document 'nobody'"),
        (["report", "--compare", "chat", "none.receipt.json"], 5, "has no readable receipt"),
        (["report", "--compare", "chat", "chat"], 5, "was never run"),
        (["report", "--compare", "chat", "chat", "--format", "html"], 2, "terminal or json"),
        (["report", "--compare", "chat", "chat", "--output", "a.html"], 2, "terminal or json"),
        (["validate", "chat", "--report", "a.pdf"], 2, "No report is known by the ending of a.pdf"),
        (["validate", "chat", "--report", "models/chat.yaml"], 2, "does not take the place of a document"),
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


@given(
    st.fixed_dictionaries(
        {},
        optional={
            key: st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.text(max_size=3))
            for key in ("attribution", "mend", "trials", "agreed", "interval", "seconds", "log", "exchanges")
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
    found = of_receipt(parse({**RECEIPT, "validation": data}))
    for form in FORMATS.values():
        assert "b" in form.write(found)


RECEIPT: dict[str, Any] = {
    "schema": 1, "name": "n", "reference": "a/b", "model_id": None, "revision": None, "directory": None,
    "digest": "sha256:" + "0" * 64, "imported_at": "", "importer": "0", "engine": {}, "evidence": [],
    "unknown": {}, "decisions": {}, "review": {"state": "pending"}, "validation": None,
}  # fmt: skip


@pytest.mark.parametrize("width", [40, 60, 89, 90, 200])
def test_a_narrow_terminal_loses_nothing(width: int) -> None:
    one = told(runs=told().runs[:1])
    for shown, words in (
        (one, ("✗", "said") if width < 90 else ("fail", "said")),
        (told(), ("mlx 1", "vllm 1")),
    ):
        file = StringIO()
        terminal.show(shown, Console(file=file, width=width, force_terminal=False))
        text = file.getvalue()
        assert all(word in text for word in words), text
        assert max(map(len, text.splitlines())) <= width
        assert "\x1b" not in text


def test_outcomes_have_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for colours in (True, False):
        file = StringIO()
        console = Console(
            file=file, width=120, force_terminal=colours, color_system="standard" if colours else None
        )
        terminal.show(told(), console)
        assert ("\x1b[1;31mfail" in file.getvalue()) == colours


def test_durations_and_moments_are_words() -> None:
    assert [duration(s) for s in (0.004, 9.5, 61, 185)] == ["0.00 s", "9.50 s", "61.0 s", "3 min 5 s"]
    assert moment("2026-01-02T03:04:05+00:00") == "2026-01-02 03:04 UTC"
    assert moment("yesterday") == "yesterday"


def receipt(*reports: Mapping[str, Any], **decisions: str) -> Receipt:
    decided = {
        key: {"value": value, "status": "user", "why": ["x"], "overruled": []}
        for key, value in decisions.items()
    }
    made = parse({**RECEIPT, "decisions": decided})
    for one in reports:
        made = made.with_validation(one, made.digest)
    return made


def test_a_comparison_tells_worse_better_other_new_and_gone() -> None:
    before = report(
        ("a", Pass("1")), ("b", Fail("x", "engine")), ("c", Fail("x", "engine")), ("d", Pass("1")),
        ("e", Pass("1")), ("f", NotApplicable("1")), ("g", Inconclusive("x", "model")),
    )  # fmt: skip
    after = report(
        ("a", Fail("2", "engine")), ("b", Pass("2")), ("c", Fail("y", "engine")), ("d", Pass("2")),
        ("n", Fail("x", "model")), ("f", Pass("2")), ("g", Fail("x", "model")), version="2.0",
    )  # fmt: skip
    found = compare(
        of_receipt(receipt(before, tool_parser="a", kind="chat")), of_receipt(receipt(after, kind="chat"))
    )
    assert {m.probe: m.way for m in found.outcomes} == {
        "a": "worse", "b": "better", "c": "other", "e": "gone", "n": "new", "f": "other", "g": "worse",
    }  # fmt: skip
    assert (found.worse, found.alike) == (2, 1)
    assert found.decisions == {"tool_parser": ({"value": "a", "status": "user"}, None)}
    assert (found.before["version"], found.after["version"]) == ("1.0", "2.0")
    schema.check("comparison", found.to_json(), "comparison")


def test_two_receipts_are_compared_and_the_exit_code_says_worse(desk: Desk) -> None:
    stored(desk, report(*ALL))
    kept = desk.folder / "before.receipt.json"
    kept.write_bytes((desk.folder / "models" / "chat.receipt.json").read_bytes())
    stored(desk, report(ALL[0], ("tool-call", Pass("a call")), *ALL[2:], version="2.0"))
    better = desk("report", "--compare", kept, "chat")
    assert better.code == 0
    assert "better: tool-call: fail → pass" in better.out
    assert "on mlx 1.0" in better.out.splitlines()[0]
    worse = desk("report", "--compare", "models/chat.yaml", kept, "--json")
    assert (worse.code, json.loads(worse.out)["worse"]) == (1, 1)
    schema.check("comparison", json.loads(worse.out), "stdout")
    assert desk("report", "--compare", kept, "chat", "--output", "c.json").code == 0
    assert json.loads((desk.folder / "c.json").read_text())["worse"] == 0


def test_the_sheet_is_a_value() -> None:
    assert asdict(told()) == asdict(told())
    assert Path(html.__file__).with_name("page.css").read_text() == html.CSS
