"""``importer report``: the validations of a document as text, JSON, JUnit XML or a page; two compared."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from importer.cli import output
from importer.document.store import write_all
from importer.errors import UsageError
from importer.reports import FORMATS, ReportFormat, of_file
from importer.reports.report_model import ReportModel, sheet

RECEIPT = ".receipt.json"
PROTECTED = (".yaml", ".yml", RECEIPT)  # what a report must not be written over


def run(arguments: argparse.Namespace) -> int:
    """Return 1 where a probe is worse than in the document to compare with, else 0.

    Raises UsageError and DocumentError.
    """
    if arguments.json and arguments.format not in (None, "json"):
        raise UsageError("bad-option", option="--json", problem=f"contradicts --format {arguments.format}")
    path = None if arguments.output is None else place(arguments.output)
    chosen = _chosen(arguments)
    if arguments.compare is not None:
        if chosen not in (FORMATS["terminal"], FORMATS["json"]) or path is not None:
            raise UsageError("bad-option", option="--compare", problem="is printed as terminal or json only")
        return _compare(arguments)
    model = _sheet(arguments.name, arguments.folder)
    if path is None and chosen is FORMATS["terminal"]:
        from importer.reports import terminal

        terminal.show(model, output.console())
    elif path is None:
        _print(chosen.write(model), one_line=arguments.json)
    else:
        write_file(path, chosen.write(model))
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    from importer.reports.compare import compare

    found = compare(*(_sheet(name, arguments.folder) for name in (arguments.compare, arguments.name)))
    if arguments.json or arguments.format == "json":
        _print(json.dumps(found.to_json(), indent=1), one_line=arguments.json)
        return 1 if found.worse else 0
    for head, (name, side) in (("before", found.before), ("after", found.after)):
        output.line(output.plain(f"{head}: {name} on {side.label}, {side.state}, {side.started}"))
    for one in found.changes:
        before, after = (outcome.outcome if outcome else "not asked" for outcome in (one.before, one.after))
        output.line(f"{one.way}: {one.probe}: {before} → {after}")
        for head, outcome in (("before", one.before), ("after", one.after)):
            if outcome is not None and not outcome.passed:
                output.line(output.plain(f"    {head}: {outcome.reason}"))
    for each in found.abilities:
        shares = (f"{did}/{asked} ({did / max(asked, 1):.0%})" for did, asked in (each.before, each.after))
        output.line(f"{each.way}: {each.ability}: {' → '.join(shares)}")
    output.line(f"{found.worse} worse, {found.alike} alike")
    return 1 if found.worse else 0


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
