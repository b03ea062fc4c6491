"""``importer show NAME``: one document with its decisions and probes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer.cli import options

if TYPE_CHECKING:
    from importer.app.overview import Overview
    from importer.config_file.receipt import Receipt
    from importer.config_file.store import StoredDocument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document's name."""
    parser.add_argument("name", metavar="NAME")
    options.folder(parser)
    options.json(parser, "the document and its receipt as one line of JSON")
    parser.add_argument(
        "--open", action="store_true", help="open its report in a browser: decisions, memory, probes"
    )


def _values(stored: StoredDocument) -> list[dict[str, object]]:
    """Return the effective values of a document."""
    from importer.config_file.effective import effective
    from importer.engines.registries import sampling_defaults

    return [one.to_json() for one in effective(stored, defaults=sampling_defaults(stored.data))]


def run(arguments: argparse.Namespace) -> None:
    """Print the text, every decision with its reasons, the fit, every probe, and the facts of lists.

    Raises DocumentError.
    """
    from importer.app.overview import overview
    from importer.cli import output, reporting
    from importer.config_file.review import row
    from importer.config_file.store import Store

    store = Store(Path(arguments.folder))
    stored = store.load(arguments.name)
    receipt = stored.need_receipt()
    shown, values = overview(stored), _values(stored)
    state = {**row(stored), **shown.to_json()}
    if arguments.open:
        reporting.open_report(stored)
    if arguments.json:
        data = {**state, "document": stored.data, "values": values, "receipt": json.loads(receipt.to_text())}
        output.json_line(output.json_text(data))
        return
    _print(stored, shown, values)


def _print(stored: StoredDocument, shown: Overview, values: list[dict[str, Any]]) -> None:
    """Print everything in the order text, decisions, fit, probes, facts, states."""
    from importer.cli import listing, output

    receipt = stored.need_receipt()
    console = output.console()
    output.line(output.plain("\n".join(stored.text.rstrip().splitlines())))
    console.print(output.decisions(receipt.decisions, values))
    if receipt.fit is not None:
        console.print(output.fit(receipt.fit))
        if (ways := output.plans(receipt.fit)) is not None:
            console.print(ways)
    _print_runs(stored, receipt)
    for text in listing.lines(shown):
        output.line(output.plain(text))
    output.line(f"review: {shown.state.review}; validation: {shown.state.validation}")
    if receipt.partial is not None:
        output.note(f"The last partial run is in 'importer report {stored.name}'.")


def _print_runs(stored: StoredDocument, receipt: Receipt) -> None:
    """Print the probes of the last validation, and the last score."""
    from importer.cli import output
    from importer.reports import report_model, terminal

    console = output.console()
    if receipt.validation is not None:
        console.print(
            terminal.outcomes(report_model.run(receipt.validation, stored.digest).outcomes, console.width)
        )
    if receipt.score is not None:
        console.print(output.score(receipt.score))
        if receipt.score["digest"] != stored.digest:
            output.note("The score is of other data than the document has now.")
