"""JUnit XML for CI systems: a suite for each engine, a case for each probe.

A failed probe is a failure, an inconclusive one an error, one that does not apply is skipped. A run of other
data than the document has now is left out: it says nothing about it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from xml.etree import ElementTree

from importer.errors import DocumentError
from importer.reports.report_model import Found, ReportModel, Run, plain

LONGEST = (
    60_000  # characters of a case's exchanges and of its log; CI systems refuse files that are too large
)
# Characters that XML 1.0 cannot hold and that ``plain`` lets pass.
UNFIT = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(sheet: ReportModel) -> str:
    """Return the file's text; raises DocumentError("never-validated")."""
    runs = [run for run in sheet.runs if run.state != "stale"]
    if not runs:
        raise DocumentError("never-validated", name=sheet.name)
    root = ElementTree.Element(
        "testsuites", _totals([f for run in runs for f in run.found]), name=_fit(sheet.name)
    )
    root.extend(_suite(sheet, run) for run in runs)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _suite(sheet: ReportModel, run: Run) -> ElementTree.Element:
    part = " (a part, not its validation)" if run.state == "partial" else ""
    suite = ElementTree.Element(
        "testsuite",
        {"name": _fit(f"{sheet.name} on {run.label}{part}")},
        **_totals(run.found),
        timestamp=_fit(run.started[:19]),  # UTC; the format has no place for a zone
    )
    told = {"model": sheet.model, "revision": sheet.revision, "digest": sheet.digest, "review": sheet.review}
    told |= {"engine": run.engine, "engine.version": run.version, "state": run.state}
    told |= {f"seconds.{name}": f"{spent:g}" for name, spent in run.seconds.items()}
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in told.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", name=_fit(name), value=_fit(value))
    suite.extend(_case(f"{sheet.name}.{run.engine}", found) for found in run.found)
    return suite


def _totals(found: tuple[Found, ...] | list[Found]) -> dict[str, str]:
    def count(outcome: str) -> str:
        return str(sum(f.outcome == outcome for f in found))

    return {
        "tests": str(len(found)),
        "failures": count("fail"),
        "errors": count("inconclusive"),
        "skipped": count("not-applicable"),
        "time": f"{sum(f.seconds for f in found):.3f}",
    }


def _case(place: str, found: Found) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", name=_fit(found.probe), classname=_fit(place), time=f"{found.seconds:.3f}"
    )
    if found.outcome == "not-applicable":
        ElementTree.SubElement(case, "skipped", message=_fit(found.reason))
    elif not found.passed:
        kind = "failure" if found.outcome == "fail" else "error"
        blamed = found.attribution or "nobody"
        message = f"{found.reason} [{blamed}]" + (
            f" Remedy: {found.remedy_message}" if found.remedy_message else ""
        )
        told = ElementTree.SubElement(case, kind, message=_fit(message), type=_fit(blamed))
        told.text = _fit("\n".join(_lines(found, blamed)))
    if found.exchanges:
        text = "\n\n".join(exchange_text(e) for e in found.exchanges)
        ElementTree.SubElement(case, "system-out").text = _fit(_cut(text))
    if found.log:
        ElementTree.SubElement(case, "system-err").text = _fit(_cut(found.log))
    return case


def _lines(found: Found, blamed: str) -> list[str]:
    told = [found.reason, f"at fault: {blamed}"]
    told += [f"remedy: {found.remedy_message}"] if found.remedy_message else []
    return [*told, f"trials: {found.agreed} of {found.trials}", f"the lesson: {found.lesson}"]


def exchange_text(told: Mapping[str, object]) -> str:
    """Return a request and its answer as they went over the wire."""
    head = f"{told.get('method')} {told.get('path')} → {told.get('status')} in {told.get('seconds')} s"
    request = told.get("request")
    asked = [] if request is None else [json.dumps(request, ensure_ascii=False)]
    failed = [str(told["error"])] if told.get("error") else []
    return "\n".join([head, *asked, str(told.get("body") or ""), *failed])


def _cut(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n… cut …\n{text[-half:]}"


def _fit(text: object) -> str:
    """Return text that XML can hold, control characters spelled out."""
    return UNFIT.sub("\ufffd", plain(str(text)))
