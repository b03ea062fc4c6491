"""``importer list``: the documents of a folder with their states, their facts and what needs attention."""

from __future__ import annotations

import argparse
from pathlib import Path

from importer.app.states import SORTS, STATES
from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder, the states and the order."""
    options.folder(parser)
    parser.add_argument(
        "--state",
        metavar="STATE",
        choices=STATES,
        action="append",
        help=f"in these states: {', '.join(STATES)}",
    )
    parser.add_argument(
        "--sort",
        metavar="KEY",
        choices=(*SORTS, *(f"-{key}" for key in SORTS)),
        help=f"by {', '.join(SORTS)}; --sort=-KEY reverses (default: grouped by model)",
    )
    options.json(parser, "one line of JSON per document")


def run(arguments: argparse.Namespace) -> None:
    """Print a row for each document, those that cannot be read included."""
    from importer.app import overview
    from importer.cli import listing, output
    from importer.config_file.review import together
    from importer.config_file.store import Store

    rows = together(overview.rows(Store(Path(arguments.folder))))
    if arguments.state:
        rows = [row for row in rows if row["state"] in arguments.state]
    if arguments.sort:
        rows = overview.ordered(rows, arguments.sort)
    if arguments.json:
        output.json_lines(rows)
        return
    console = output.console()
    console.print(listing.table(rows, console.width))
