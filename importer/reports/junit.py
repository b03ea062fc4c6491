"""JUnit XML for CI systems: a suite for each engine, a case for each probe.

A failed probe is a failure, an inconclusive one an error; one that does not apply is skipped, and so is one
that the model does not show. A run of other
data than the present document is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from xml.etree import ElementTree

from importer.errors import DocumentError
from importer.reports.report_model import ProbeOutcome, ReportModel, Run
from importer.sentences import plain

LONGEST = (
    60_000  # characters of a case's exchanges and of its log; CI systems refuse files that are too large
)
# Characters that XML 1.0 cannot hold and that ``plain`` lets pass.
UNFIT = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(sheet: ReportModel) -> str:
    """Return the text of the file; raises DocumentError("never-validated")."""
    runs = [run for run in sheet.runs if run.state != "stale"]
    if not runs:
        raise DocumentError("never-validated", name=sheet.name)
    root = ElementTree.Element(
        "testsuites", _totals([f for run in runs for f in run.outcomes]), name=_fit(sheet.name)
    )
    root.extend(_suite(sheet, run) for run in runs)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _suite(sheet: ReportModel, run: Run) -> ElementTree.Element:
    part = " (a part, not its validation)" if run.state == "partial" else ""
    suite = ElementTree.Element(
        "testsuite",
        {"name": _fit(f"{sheet.name} on {run.label}{part}")},
        **_totals(run.outcomes),
        timestamp=_fit(run.started[:19]),  # UTC; the format has no place for a zone
    )
    fields = {
        "model": sheet.model,
        "revision": sheet.revision,
        "digest": sheet.digest,
        "review": sheet.review,
    }
    fields |= {"engine": run.engine, "engine.version": run.version, "state": run.state}
    fields |= {f"seconds.{name}": f"{spent:g}" for name, spent in run.seconds.items()}
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in fields.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", name=_fit(name), value=_fit(value))
    suite.extend(_case(f"{sheet.name}.{run.engine}", outcome) for outcome in run.outcomes)
    return suite


def _totals(outcomes: tuple[ProbeOutcome, ...] | list[ProbeOutcome]) -> dict[str, str]:
    def count(outcome: str) -> str:
        return str(sum(f.outcome == outcome for f in outcomes))

    return {
        "tests": str(len(outcomes)),
        "failures": count("fail"),
        "errors": count("inconclusive"),
        "skipped": str(sum(f.outcome in ("not-applicable", "not-shown") for f in outcomes)),
        "time": f"{sum(f.seconds for f in outcomes):.3f}",
    }


def _case(place: str, outcome: ProbeOutcome) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", name=_fit(outcome.probe), classname=_fit(place), time=f"{outcome.seconds:.3f}"
    )
    if outcome.outcome in ("not-applicable", "not-shown"):
        ElementTree.SubElement(case, "skipped", message=_fit(outcome.reason))
    elif not outcome.passed:
        kind = "failure" if outcome.outcome == "fail" else "error"
        part = outcome.attribution or "no part"
        message = f"{outcome.reason} [{part}]" + (f" Remedy: {outcome.told}" if outcome.told else "")
        element = ElementTree.SubElement(case, kind, message=_fit(message), type=_fit(part))
        element.text = _fit("\n".join(_lines(outcome, part)))
    if outcome.exchanges:
        text = "\n\n".join(exchange_text(e) for e in outcome.exchanges)
        ElementTree.SubElement(case, "system-out").text = _fit(_cut(text))
    if outcome.log:
        ElementTree.SubElement(case, "system-err").text = _fit(_cut(outcome.log))
    return case


def _lines(outcome: ProbeOutcome, part: str) -> list[str]:
    lines = [outcome.reason, f"at fault: {part}"]
    lines += [f"remedy: {outcome.told}"] if outcome.told else []
    return [*lines, f"trials: {outcome.agreed} of {outcome.trials}", f"the lesson: {outcome.lesson}"]


def exchange_text(data: Mapping[str, object]) -> str:
    """Return the text of a request and its answer."""
    head = f"{data.get('method')} {data.get('path')} → {data.get('status')} in {data.get('seconds')} s"
    request = data.get("request")
    sent = [] if request is None else [json.dumps(request, ensure_ascii=False)]
    failed = [str(data["error"])] if data.get("error") else []
    return "\n".join([head, *sent, str(data.get("body") or ""), *failed])


def _cut(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n… cut …\n{text[-half:]}"


def _fit(text: object) -> str:
    """Return text that XML can hold, with control characters escaped."""
    return UNFIT.sub("\ufffd", plain(str(text)))
