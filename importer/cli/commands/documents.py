"""Commands of documents: list, show, why, review, recheck, export, report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from importer.app.states import STATES
from importer.cli import options
from importer.errors import UsageError

if TYPE_CHECKING:
    from importer.app.overview import Overview
    from importer.document.receipt import Receipt
    from importer.document.store import StoredDocument


def add_arguments_list(parser: argparse.ArgumentParser) -> None:
    """Add the folder and the states."""
    options.folder(parser)
    parser.add_argument(
        "--state",
        metavar="STATE",
        choices=STATES,
        action="append",
        help=f"in these states: {', '.join(STATES)}",
    )
    options.json(parser, "one line of JSON per document")


def run_list(arguments: argparse.Namespace) -> None:
    """Print a row for each document, those that cannot be read included; raises UsageError for no folder."""
    from importer.app import overview
    from importer.cli import listing, output
    from importer.document.review import together
    from importer.document.store import Store

    folder = Path(arguments.folder)
    if arguments.folder != options.FIRST and not folder.exists():
        raise UsageError("no-such-directory", path=folder)
    rows = together(overview.rows(Store(folder)))
    if arguments.state:
        rows = [row for row in rows if row["state"] in arguments.state]
    if arguments.json:
        output.json_lines(rows)
        return
    console = output.console()
    if not console.is_terminal:
        console.width = listing.WHOLE
    console.print(listing.table(rows, console.width))


def add_arguments_show(parser: argparse.ArgumentParser) -> None:
    """Add the document's name."""
    parser.add_argument("name", metavar="NAME")
    options.folder(parser)
    options.json(parser, "the document and its receipt as one line of JSON")


def run_show(arguments: argparse.Namespace) -> None:
    """Print the text, every decision with its reasons, the fit, every probe, and the facts of lists.

    Raises DocumentError.
    """
    from importer.app.overview import overview
    from importer.app.why import values
    from importer.cli import output
    from importer.document.review import row
    from importer.document.store import Store

    store = Store(Path(arguments.folder))
    stored = store.load(arguments.name)
    receipt = stored.need_receipt()
    shown = overview(stored)
    state = {**row(stored), **shown.to_json()}
    if arguments.json:
        data = {
            **state,
            "document": stored.data,
            "values": values(stored),
            "receipt": json.loads(receipt.to_text()),
        }
        output.json_line(data)
        return
    _print(stored, shown)


def _print(stored: StoredDocument, shown: Overview) -> None:
    """Print everything in the order text, decisions, fit, probes, facts, states."""
    from importer.cli import listing, output
    from importer.document.effective import decisions

    receipt = stored.need_receipt()
    console = output.console()
    output.line(output.plain("\n".join(stored.text.rstrip().splitlines())))
    console.print(output.decisions(decisions(stored)))
    if receipt.fit is not None:
        console.print(output.fit(receipt.fit))
        if (ways := output.plans(receipt.fit)) is not None:
            console.print(ways)
    _print_runs(stored, receipt)
    for text in listing.lines(shown):
        output.line(output.plain(text))
    output.line(f"review: {shown.state.review}; validation: {shown.state.validation}")
    if receipt.partial is not None:
        how = output.typed("report", stored.name, str(stored.path.parent))
        output.note(f"The last partial run is in {how}.")


def _print_runs(stored: StoredDocument, receipt: Receipt) -> None:
    """Print the probes of the last validation."""
    from importer.cli import output
    from importer.reports import report_model, terminal

    console = output.console()
    if receipt.validation is not None:
        console.print(
            terminal.outcomes(report_model.run(receipt.validation, stored.digest).outcomes, console.width)
        )


FACTS, CANDIDATES = 3, 1  # of a value; --all prints every one


def add_arguments_why(parser: argparse.ArgumentParser) -> None:
    """Add the document's name and the key."""
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("key", metavar="KEY", nargs="?", help="one value, such as tool_parser or temperature")
    options.folder(parser)
    options.json(parser, "one line of JSON for each value, with every fact and candidate")
    parser.add_argument("--all", action="store_true", help="print every fact and every candidate")


def run_why(arguments: argparse.Namespace) -> None:
    """Print a paragraph for each value. Raises DocumentError."""
    from importer.app.why import explanations
    from importer.cli import output
    from importer.document.store import Store

    found = explanations(Store(Path(arguments.folder)).load(arguments.name), arguments.key)
    if arguments.json:
        output.json_lines(one.to_json() for one in found)
        return
    for one in found:
        lines = one.explain() if arguments.all else one.explain(FACTS, CANDIDATES)
        for text in lines:
            output.line(output.plain(text))
        hidden = 0 if arguments.all else len(one.candidates) - CANDIDATES
        if hidden > 0:
            output.line(f"  and {hidden} more: --all prints them")


def add_arguments_review(parser: argparse.ArgumentParser) -> None:
    """Add the document, and the review to record without questions."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--approve", action="store_true", help="approve the present content")
    group.add_argument("--reject", metavar="NOTE", help="reject the document, with this note")
    options.explain(parser)
    parser.add_argument("name", metavar="NAME")
    options.folder(parser)
    parser.add_argument("--note", help="a note on the approval")
    parser.add_argument("--digest", help="refuse if the document's digest has changed")
    options.json(parser, "what a reviewer is shown as one line of JSON")


def add_arguments_recheck(parser: argparse.ArgumentParser) -> None:
    """Add the documents, and the engine's version."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="documents (default: all in the folder)")
    options.folder(parser)
    parser.add_argument(
        "--engine-version",
        metavar="VERSION",
        type=options.filled,
        help="compare with an import for this version of the engine",
    )
    options.of_import(parser, "offline")
    options.json(parser, "one line of JSON per document")


def add_arguments_export(parser: argparse.ArgumentParser) -> None:
    """Add the document, the format and the file."""
    parser.add_argument(
        "name",
        metavar="NAME|FILE|DIR/",
        type=options.filled,
        nargs="?",
        help="a document, or each of a folder",
    )
    parser.add_argument("format", metavar="FORMAT", nargs="?", help="one of those that --list shows")
    parser.add_argument("--list", action="store_true", help="the formats and what reads them")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE|DIR",
        type=options.place,
        help="the file, or the folder for several, to write (default: standard output)",
    )
    options.folder(parser)
    parser.add_argument(
        "--device", choices=("gpu", "cpu"), help="hardware for vLLM (default: the document's device)"
    )
    parser.add_argument("--approved-only", action="store_true", help="refuse a document without approval")
    options.json(parser, "files and what they lack as one line of JSON")


def add_arguments_report(parser: argparse.ArgumentParser) -> None:
    """Add the document, another one to compare, and the report's form and file."""
    parser.add_argument("name", metavar="NAME|FILE", type=options.document)
    parser.add_argument(
        "--compare",
        metavar="NAME|FILE",
        type=options.document,
        help="what differs from this document's validation; exit code 1 where NAME is worse",
    )
    parser.add_argument(
        "--format",
        choices=options.Names("renderers", ("terminal", "json", "junit", "html")),
        help="default: by FILE's ending, else terminal",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=options.place,
        help="the file to write (default: standard output)",
    )
    options.folder(parser)
    options.json(parser, "the same as --format json, on one line")
