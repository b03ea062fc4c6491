"""``importer fit NAME|FILE``: what fits where, estimated or measured."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document, and what is asked of it."""
    parser.add_argument("name", metavar="NAME|FILE")
    options.folder(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--devices", action="store_true", help="print what each device holds of it")
    what.add_argument(
        "--measure",
        action="store_true",
        help="start its engine with random weights, and choose context and layout by the memory it reports",
    )
    parser.add_argument(
        "--on", metavar="TARGET", help="measure on another machine or a cluster, as 'validate --on' names it"
    )
    options.json(parser, "one line of JSON")


def run(arguments: argparse.Namespace) -> None:
    """Print the fit of a document; measure the memory first where that is asked."""
    from importer.cli import fitting

    fitting.fit(arguments)
