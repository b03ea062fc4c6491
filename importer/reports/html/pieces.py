"""The pieces of a page, each from a sheet's own types; a service's pages are built from the same ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from importer.reports.html.markup import Markup, el, join
from importer.reports.report_model import Found, ReportModel, Run, duration, moment, split, trials, value

SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "not-applicable": "–"}
COLOURED = ("pass", "fail", "inconclusive", "passed", "failed", "partial", "stale", "approved", "rejected")
SHORT = {"not-applicable": "n/a"}
BAR = 80  # units of an interval's bar
LINE = 400  # units of the bar of times


def mark(word: str, sign: str = "", shown: str | None = None) -> Markup:
    """A word, or what is shown for it, on its colour; the sign says the same to those who see no colour."""
    before = el("span", f"{sign} ", aria_hidden="true") if sign else None
    return el("span", before, shown or word, class_=f"mark {word}" if word in COLOURED else "mark")


def outcome(found: Found) -> Markup:
    """An outcome as a mark."""
    return mark(found.outcome, SIGNS.get(found.outcome, ""), SHORT.get(found.outcome))


def anchor(probe: str) -> str:
    """A probe's place in the page."""
    return "probe-" + re.sub(r"[^a-z0-9-]", "-", probe.lower())


def head(sheet: ReportModel) -> Markup:
    """Name, verdict, and what the verdict is about."""
    verdict = mark(sheet.validation, {"passed": "✓", "failed": "✗"}.get(sheet.validation, ""))
    said = sheet.word
    by = f" by {said['by']}, {moment(str(said.get('at')))}" if said.get("by") else ""
    note = f": {said['note']}" if said.get("note") else ""
    facts = {
        "model": el("code", sheet.model or "unknown"),
        "commit": el("code", sheet.revision) if sheet.revision else None,
        "review": join(mark(sheet.review), f"{by}{note}"),
        "engines": ", ".join(dict.fromkeys(run.label for run in sheet.runs)) or "none yet",
        "digest": el("code", sheet.digest),
    }
    rows = [(el("dt", name), el("dd", told)) for name, told in facts.items() if told is not None]
    title = el("div", el("h1", sheet.name), "validation ", verdict, class_="title")
    return join(title, el("dl", rows, class_="facts"))


def runs(sheet: ReportModel) -> Markup:
    """When each run was, how it ended, and where its time went."""
    return join(_run(run) for run in sheet.runs)


def _run(run: Run) -> Markup:
    counts = ", ".join(f"{number} {name}" for name, number in run.counts.items() if number)
    notes = {
        "stale": "These are outcomes of other data than the document has now.",
        "partial": "Only a part was asked: this is not the document's validation.",
    }
    partial = dict(run.partial or {})
    against = partial.get("against")
    asked = f" Asked: {', '.join(map(str, partial.get('probes') or ()))}." if partial and not against else ""
    note = notes.get(run.state)
    return el(
        "div",
        el(
            "p",
            el("strong", run.label),
            " ",
            mark(run.state),
            " ",
            el("span", f"{counts}; {moment(run.started)}", class_="soft"),
        ),
        el("p", note, asked, class_="soft") if note else None,
        times(run.seconds),
        fitted(run.fit),
        class_="run",
    )


def times(seconds: Mapping[str, float]) -> Markup:
    """A bar of start, probes and stop, and the same in words."""
    total = sum(seconds.values())
    if total <= 0:
        return join()
    bars, at = [], 0.0
    for part, spent in seconds.items():
        wide = LINE * spent / total
        kind = part if part in ("start", "probes", "stop") else "ground"
        bars.append(el("rect", x=f"{at:.1f}", y=0, width=f"{wide:.1f}", height=8, class_=kind))
        at += wide
    drawn = el("svg", bars, viewBox=f"0 0 {LINE} 8", class_="time", aria_hidden="true")
    return join(drawn, el("p", split(dict(seconds)), class_="soft small"))


def fitted(fit: Mapping[str, Any]) -> Markup | None:
    """What was predicted beside what the engine reported."""
    told = [
        f"{what.replace('_', ' ')}: {found.get('predicted')} predicted, {found.get('reported')} reported"
        for what, found in fit.items()
        if isinstance(found, Mapping)
    ]
    return el("p", "; ".join(told), class_="soft small") if told else None


def troubles(sheet: ReportModel) -> Markup | None:
    """What did not pass, with blame and what would mend it; nothing where everything did."""
    found = [(run, f) for run in sheet.runs if run.state != "stale" for f in run.found if not f.passed]
    if not found:
        return None
    return join(
        el(
            "article",
            el("h3", el("a", f.probe, href=f"#{anchor(f.probe)}"), " ", outcome(f), " ", blame(f), " ",
               el("span", f"on {run.label}", class_="soft")),
            el("p", f.reason, class_="break"),
            mend(f),
            class_=f"trouble {f.outcome if f.outcome == 'inconclusive' else 'fail'}",
        )
        for run, f in found
    )  # fmt: skip


def blame(found: Found) -> Markup | None:
    """The part at fault."""
    return el("span", f"blame: {found.attribution}", class_="soft") if found.attribution else None


def mend(found: Found) -> Markup | None:
    """The one change that would help."""
    return el("p", found.mend, class_="mend break") if found.mend else None


def matrix(sheet: ReportModel) -> Markup:
    """Probes and reasons of one whole run; of several, probes and engines; parts by themselves."""
    whole = _single(sheet.whole[0]) if len(sheet.whole) == 1 else _several(sheet) if sheet.whole else None
    return join(
        whole, ((el("h3", f"Only a part, asked of {run.label}"), _single(run)) for run in sheet.parts)
    )


def _single(run: Run) -> Markup:
    rows = (
        el(
            "tr",
            el("th", _link(f.probe), scope="row"),
            el("td", outcome(f)),
            el("td", f.attribution or ""),
            el("td", interval(f)),
            el("td", f.reason, mend(f), class_="reason"),
        )
        for f in run.found
    )
    return _table(
        ("probe", "outcome", "blame", "trials, 95 % interval", "reason"), rows, "stack outcomes", "Probes"
    )


def _several(sheet: ReportModel) -> Markup:
    def cells(probe: str) -> Iterator[Markup]:
        for run in sheet.whole:
            found = run.by_probe.get(probe)
            yield el("td", "" if found is None else outcome(found))

    heads = [
        join(run.label, join(" ", mark(run.state)) if run.state == "stale" else None) for run in sheet.whole
    ]
    rows = (el("tr", el("th", _link(probe), scope="row"), cells(probe)) for probe in sheet.validating)
    return _table(("probe", *heads), rows, "several", "Probes and engines")


def _link(probe: str) -> Markup:
    return el("a", probe, href=f"#{anchor(probe)}")


def _table(heads: tuple[object, ...], rows: Iterator[Markup], kind: str, label: str) -> Markup:
    """A table that can be scrolled by keys where it is wider than the page."""
    top = el("thead", el("tr", (el("th", head, scope="col") for head in heads)))
    made = el("table", top, el("tbody", rows), class_=kind)
    return el("div", made, class_="scroll", role="region", tabindex=0, aria_label=label)


def interval(found: Found) -> Markup:
    """The trials in words, and the interval drawn on a line from 0 to 100 %."""
    if found.interval is None:
        return join()
    low, high = (max(0.0, min(1.0, end)) for end in found.interval)
    bar = el("rect", x=f"{BAR * low:.1f}", y=1, width=f"{max(1.0, BAR * (high - low)):.1f}", height=6,
             class_=found.outcome if found.outcome in SIGNS else "ground")  # fmt: skip
    ground = el("rect", x=0, y=3, width=BAR, height=2, class_="ground")
    drawn = el("svg", ground, bar, viewBox=f"0 0 {BAR} 8", width=BAR, height=8, aria_hidden="true")
    return el(
        "div", drawn, el("span", trials(found.agreed, found.trials, found.interval)), class_="trials small"
    )


def probes(sheet: ReportModel) -> Markup:
    """Every probe with its lesson, its outcome in each run, and the raw exchanges folded."""
    return join(_probe(sheet, probe) for probe in sheet.probes)


def _probe(sheet: ReportModel, probe: str) -> Markup:
    found = [(run, run.by_probe[probe]) for run in sheet.runs if probe in run.by_probe]
    told = (outcome(f) for _, f in found)
    summary = el(
        "summary", el("h3", probe), told, el("span", sheet.lesson(probe), class_="lesson soft small")
    )
    inner = el("div", (_found(run, f) for run, f in found), id=anchor(probe))
    opened = "" if any(not f.passed for _, f in found) else None
    return el("details", summary, inner, class_="probe", open=opened)


def _found(run: Run, found: Found) -> Markup:
    log = (
        el("details", el("summary", "What the engine's log complained of"), el("pre", found.log))
        if found.log
        else None
    )
    return el(
        "div",
        el("p", el("strong", run.label), " ", outcome(found), " ", blame(found), " ",
           el("span", f"took {duration(found.seconds)}", class_="soft small")),
        el("p", found.reason, class_="break"),
        mend(found),
        interval(found),
        log,
        exchanges(found),
        class_="run",
    )  # fmt: skip


def exchanges(found: Found) -> Markup | None:
    """Requests and answers as they went over the wire, folded."""
    if not found.exchanges:
        return None
    number = len(found.exchanges)
    title = f"{number} raw exchange{'s' * (number != 1)}"
    return el("details", el("summary", title), (_exchange(told) for told in found.exchanges))


def _exchange(told: Mapping[str, Any]) -> Markup:
    head = f"{told.get('method')} {told.get('path')} → {told.get('status')} in {told.get('seconds')} s"
    request = told.get("request")
    asked = (
        None if request is None else el("pre", json.dumps(request, indent=1, ensure_ascii=False), tabindex=0)
    )
    failed = el("p", str(told["error"]), class_="break") if told.get("error") else None
    answer = el("pre", str(told.get("body") or ""), tabindex=0)
    return el("div", el("p", head, class_="mono"), asked, answer, failed)


def decisions(sheet: ReportModel) -> Markup:
    """Key, value, status and reasons; what was overruled and the evidence folded below."""
    rows = (
        el(
            "tr",
            el("th", key, scope="row"),
            el("td", el("code", value(told.get("value")))),
            el("td", mark(str(told.get("status")))),
            el(
                "td",
                el("ul", (el("li", str(why)) for why in told.get("why") or ()), class_="plain"),
                _behind(sheet, key, told),
            ),
        )
        for key, told in sheet.decisions.items()
    )
    return _table(("decision", "value", "status", "why"), rows, "stack", "Decisions")


def _behind(sheet: ReportModel, key: str, told: Mapping[str, Any]) -> Markup | None:
    lines = [
        el("li", el("code", value(e.get("value"))), f" {e.get('source')}: {e.get('says')}",
           el("pre", str(e["quote"])) if e.get("quote") else None)
        for e in sheet.evidence
        if e.get("key") == key
    ]  # fmt: skip
    lines += [
        el("li", "overruled: ", el("code", value(o.get("value"))), f" {o.get('source')}: {o.get('why')}")
        for o in told.get("overruled") or ()
    ]
    if not lines:
        return None
    return el(
        "details",
        el("summary", f"evidence ({len(lines)})", class_="soft small"),
        el("ul", lines),
        class_="small",
    )


def document(sheet: ReportModel) -> Markup:
    """The document's own text."""
    return el("pre", sheet.text, tabindex=0)
