"""A validation to report, with everything in it, and how a page is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from importer.document.store import Store
from importer.reasons import Reason
from importer.reports.report_model import ProbeOutcome, ReportModel, Run
from importer.validation.outcome import (
    Fail,
    Inconclusive,
    NotApplicable,
    Outcome,
    Pass,
    ProbeRow,
    Report,
    Stage,
)
from importer.validation.remedy import Remedy
from tests.commandline import Desk, desk
from tests.facts import as_reason

__all__ = ["desk"]
# Everything that a page is built of: none of it loads, runs or sends anything.
ELEMENTS = {
    "a", "article", "body", "code", "dd", "details", "div", "dl", "dt", "footer", "h1", "h2", "h3", "head",
    "header", "html", "li", "main", "meta", "ol", "p", "pre", "rect", "section", "span", "strong", "style",
    "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "aria-hidden", "aria-label", "aria-labelledby", "charset", "class", "content", "height", "href",
    "http-equiv", "id", "lang", "name", "open", "role", "scope", "tabindex", "width", "x", "y",
}  # fmt: skip
EXCHANGE = {
    "method": "POST", "path": "/v1/chat/completions", "request": {"model": "m"}, "status": 200, "body": "{}",
    "seconds": 0.1, "error": None,
}  # fmt: skip


def report(
    *outcomes: tuple[str, Outcome], engine: str = "mlx", version: str = "1.0", **more: Any
) -> dict[str, Any]:
    """What a receipt keeps of a run."""
    error = "ERROR x"
    rows = tuple(ProbeRow(name, f"lesson of {name}", outcome, 0.2, error if isinstance(outcome, Fail) else "")
                 for name, outcome in outcomes)  # fmt: skip
    head = {"name": engine, "version": version}
    seconds = {"start": 2.0, "probes": 1.0, "stop": 0.5}
    return Report(head, "2026-01-02T03:04:05+00:00", seconds, rows, **more).to_json()


ALL = (
    ("health", Pass(as_reason("up"), evidence=(EXCHANGE,))),
    (
        "tool-call",
        Fail(
            as_reason("no call"), Stage.PARSED,
            Reason(Remedy.SET_PARSER, key="tool_parser", parser="hermes", named=None), trials=3,
            evidence=(EXCHANGE,),
        ),
    ),
    ("message-forms", Inconclusive(as_reason("it forgot"), Stage.DRAWN, trials=3, agreed=2)),
    ("answer-ends", NotApplicable(as_reason("the engine does not offer: stop"))),
)  # fmt: skip


def told(text: str = "", **changes: Any) -> ReportModel:
    """A sheet with ``text`` wherever something of outside stands."""
    exchange = {**EXCHANGE, "body": text, "error": text, "request": {"messages": [text], text: text}}
    found = tuple(
        ProbeOutcome(
            name + text, outcome, text or "said", "model", text, 3, 2, (0.2, 0.9), 0.5, text, text,
            (exchange,),
        )
        for name, outcome in (("a", "pass"), ("b", "fail"), ("c", "inconclusive"), ("d", "not-applicable"))
    )  # fmt: skip
    first = Run(
        f"mlx{text}", text or "1", "failed", False, text, "sha256:0", {"start": 1.0, text: 2.0}, found
    )
    part = replace(first, state="partial", partial={"probes": [text], "against": text}, outcomes=found[:1])
    decision = {
        "value": text, "status": text, "why": [text],
        "overruled": [{"value": text, "source": text, "why": text}],
    }  # fmt: skip
    evidence = {"rule": text, "key": "kind", "value": [text], "source": text, "message": text, "quote": text}
    made = ReportModel(
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


def stored(desk: Desk, *reports: Mapping[str, Any]) -> Any:
    """A document whose receipt has these runs."""
    if not (desk.folder / "models" / "chat.yaml").exists():
        assert desk("acme/chat", "--yes", "--name", "chat").code == 0
    store = Store(desk.folder / "models")
    digest = store.load("chat").digest
    for one in reports:
        store.amend("chat", lambda receipt, one=one: receipt.with_validation(one, digest))  # type: ignore[misc]
    return store.load("chat")


RECEIPT: dict[str, Any] = {
    "schema": 1, "name": "n", "reference": "a/b", "model_id": None, "revision": None, "directory": None,
    "digest": "sha256:" + "0" * 64, "imported_at": "", "importer": "0", "engine": {}, "evidence": [],
    "unknown": {}, "decisions": {}, "review": {"state": "pending"}, "validation": None,
}  # fmt: skip
