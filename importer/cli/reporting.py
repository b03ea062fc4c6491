"""``importer report``: a document's validations as text, JSON, JUnit XML or a page; two of them compared."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from importer import config
from importer.cli import output
from importer.document.document_keys import shown
from importer.document.store import receipt_at, write_all
from importer.errors import UsageError
from importer.reports import FORMATS, ReportFormat, of_file
from importer.reports.compare import RunComparison, compare
from importer.reports.report_model import ReportModel, duration, of_receipt, sheet

if TYPE_CHECKING:
    from importer.document.store import StoredDocument

WORSE = 1  # the exit code where a comparison found something that got worse
RECEIPT = ".receipt.json"
PROTECTED = (".yaml", ".yml", RECEIPT)  # what a report must not be written over


def run(arguments: argparse.Namespace) -> int:
    """Return 1 where a comparison has a worse outcome, else 0; raises UsageError and DocumentError."""
    if (arguments.name is None) == (arguments.compare is None):
        problem = "give one document, or two validations with --compare"
        raise UsageError("bad-option", option="NAME|FILE", problem=problem)
    if arguments.json and arguments.format not in (None, "json"):
        raise UsageError("bad-option", option="--json", problem=f"contradicts --format {arguments.format}")
    path = None if arguments.output is None else place(arguments.output)
    if arguments.compare is not None:
        return _compare(arguments, path)
    chosen = _chosen(arguments)
    model = _sheet(arguments.name, arguments.folder)
    if path is None and chosen is FORMATS["terminal"]:
        from importer.reports import terminal

        terminal.show(model, output.console())
    elif path is None:
        _print(chosen.write(model), one_line=arguments.json)
    else:
        write_file(path, chosen.write(model))
    return 0


def _chosen(arguments: argparse.Namespace) -> ReportFormat:
    """Return the format by its name, else by the file's ending; raises UsageError("unknown-report")."""
    name = "json" if arguments.json else arguments.format
    if name:
        return FORMATS[name]
    return FORMATS["terminal"] if arguments.output is None else of_file(arguments.output)


def place(name: str) -> Path:
    """Return where a report goes; raises UsageError for a document, a receipt or a folder."""
    path = Path(name)
    if name.endswith(PROTECTED):
        raise UsageError("bad-option", option=name, problem="is a document or a receipt; choose another file")
    if path.is_dir():
        raise UsageError("bad-option", option=name, problem="is a folder, not a file")
    return path


def write_file(path: Path, text: str) -> None:
    """Write a report, over the last one; raises DocumentError("cannot-write")."""
    write_all({path: text})
    output.note(f"Wrote {path}.")


def open_report(stored: StoredDocument) -> None:
    """Write the report of a document as a page, and open it in the browser; else print where it is.

    The page lies among the caches, under a name of its own for each folder. Raises
    DocumentError("cannot-write").
    """
    import webbrowser

    folder = hashlib.sha256(str(stored.path.parent.resolve()).encode()).hexdigest()[:8]
    path = config.cache() / "reports" / f"{stored.name}-{folder}.html"
    write_all({path: FORMATS["html"].write(sheet(stored))})
    if webbrowser.open(path.absolute().as_uri()):
        output.note(f"Opened {path}.")
    else:
        output.note(f"No browser was found here. The report is {path}.")


def _print(text: str, *, one_line: bool) -> None:
    if one_line:
        output.json_line(json.loads(text))
    else:
        output.line(text.rstrip("\n"))


def _sheet(name: str, folder: str) -> ReportModel:
    from importer.document.store import named

    stored = named(name, folder)[1]
    output.without_details(stored)
    return sheet(stored)


def _side(name: str, folder: str) -> ReportModel:
    """Return one of two validations: a document's, by name or file, or that of a receipt by itself."""
    return of_receipt(receipt_at(Path(name))) if name.endswith(RECEIPT) else _sheet(name, folder)


def _compare(arguments: argparse.Namespace, path: Path | None) -> int:
    chosen = _chosen(arguments)
    if chosen not in (FORMATS["terminal"], FORMATS["json"]):
        raise UsageError("bad-option", option="--compare", problem="is printed as terminal or json only")
    comparison = compare(*(_side(side, arguments.folder) for side in arguments.compare))
    if chosen is FORMATS["json"]:
        text = json.dumps(comparison.to_json(), indent=1) + "\n"
    else:
        text = "".join(f"{output.plain(line)}\n" for line in _lines(comparison))
    if path is None:
        _print(text, one_line=arguments.json)
    else:
        write_file(path, text)
    return WORSE if comparison.worse else 0


def _lines(comparison: RunComparison) -> Iterator[str]:
    yield f"before: {_named(comparison.before)}"
    yield f"after:  {_named(comparison.after)}"
    for moved in comparison.outcomes:
        yield f"{moved.way}: {moved.probe}: {moved.before or 'not asked'} → {moved.after or 'not asked'}"
        yield from (f"    before: {moved.reason_before}",) if moved.reason_before else ()
        yield from (f"    after:  {moved.reason_after}",) if moved.reason_after else ()
    yield f"{comparison.worse} worse, {comparison.alike} alike"
    for key, (before, after) in comparison.decisions.items():
        yield f"decision {key}: {_decided(before)} → {_decided(after)}"
    for part, (spent, spends) in comparison.time.items():
        yield f"{part}: {_seconds(spent)} → {_seconds(spends)}"


def _named(head: Mapping[str, object]) -> str:
    engine = f"{head['engine']} {head['version'] or ''}".strip()
    return f"{head['name']} on {engine}, {head['state']}, {head['started']}, {head['digest']}"


def _decided(decision: Mapping[str, object] | None) -> str:
    return "none" if decision is None else f"{shown(decision['value'])} ({decision['status']})"


def _seconds(spent: float | None) -> str:
    return "–" if spent is None else duration(spent)
