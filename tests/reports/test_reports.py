"""Reports: one validation as text, JSON, JUnit XML and a page, whatever was written into it."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import nodes
from markupsafe import Markup
from rich.console import Console

from importer.reports import html, json_report, junit, terminal
from importer.reports.report_model import duration, sheet
from importer.sentences import moment
from tests.commandline import Desk, desk
from tests.reporting import ALL, ATTRIBUTES, ELEMENTS, EXCHANGE, looked_at, report, stored, told

__all__ = ["desk"]
LIVE = (
    "<script>document.title = 'run'</script>", "</pre></details><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)><a href='javascript:alert(1)'>",
    "</style><style>@import 'http://127.0.0.1:9/x'</style>", "--><!-- ]]> <![CDATA[ &amp; &lt; ${x} {{ x }}",
    "\x1b]0;title\x07\x1b[2J\x00\x08\r\u202e\ufffe\ud800", "[bold red]markup[/] :smile:",
)  # fmt: skip


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
    data = json_report.write(told(text))
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
        "validation ✗ failed", "What did not pass", "Set tool_parser:hermes in options: ", "Runs",
        "start 2.00 s, probes 1.00 s", "Probes", "Decisions", "Each probe",
        "lesson of tool-call", "3 of 3, 44–100 %", "ERROR x", "1 raw exchange",
        "POST /v1/chat/completions → 200", "The document", "Written by importer",
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
    directives = dict(d.strip().split(" ", 1) for d in policy[1].replace("&#39;", "'").split(";"))
    assert directives.pop("style-src").startswith("'sha256-")
    assert directives == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    assert " style=" not in page  # the policy would not let it in


BESIDE = ("openapi.json", "./")  # the page of the API
# The gallery's page runs a script of its own: tests/cli/test_gallery.py.
TEMPLATES = sorted(p for p in Path(html.__file__).parent.glob("*.jinja") if p.name != "gallery.html.jinja")


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_takes_a_value_for_markup(template: Path) -> None:
    """Autoescape holds for whatever no template marks as safe, whatever stands in it."""
    environment = html.environment()
    assert environment.autoescape is True
    tree = environment.parse(template.read_text(encoding="utf-8"))
    assert not {f.name for f in tree.find_all(nodes.Filter)} & {"safe", "attr", "xmlattr", "tojson", "urlize"}
    assert not list(
        tree.find_all((nodes.MarkSafe, nodes.MarkSafeIfAutoescape, nodes.ScopedEvalContextModifier))
    )
    assert {name for name, value in environment.globals.items() if isinstance(value, Markup)} == {"style"}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_holds_nothing_live(template: Path) -> None:
    """Every value stands between quotes or as text, in elements that load and run nothing."""
    text = re.sub(r"\{#.*?#\}", "", template.read_text(encoding="utf-8"), flags=re.DOTALL)
    written = re.sub(
        r"\{\{.*?\}\}", "VALUE", re.sub(r"\{%.*?%\}", "", text, flags=re.DOTALL), flags=re.DOTALL
    )
    tags = re.findall(r"<([a-zA-Z!/][^<>]*)>", written)
    assert len(tags) > 20
    for tag in tags:
        name, _, attributes = tag.partition(" ")
        assert name.strip("/").removeprefix("!doctype") in ELEMENTS | {""}, tag
        assert re.fullmatch(r'(?: ?[a-zA-Z-]+="[^"<>]*")*', attributes) or name == "!doctype", tag
        assert set(re.findall(r' ?([a-zA-Z-]+)="', attributes)) <= ATTRIBUTES, tag
        places = re.findall(r'href="([^"]*)"', attributes)
        assert all(place.startswith("#") or place in BESIDE for place in places), tag


def test_a_value_is_escaped_once() -> None:
    page = html.write(told("a < b & c\x00"))
    assert "a &lt; b &amp; c\\x00" in page
    assert "&amp;lt;" not in page


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
