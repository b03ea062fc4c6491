"""``importer report NAME|FILE``: its validations to read, to send on, to compare."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document or two of them, and the report's form and file."""
    parser.add_argument("name", metavar="NAME|FILE", nargs="?")
    parser.add_argument(
        "--format",
        choices=options.Names("renderers", ("terminal", "json", "junit", "html")),
        help="default: by FILE's ending, else terminal",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: standard output)")
    options.folder(parser)
    parser.add_argument(
        "--compare",
        metavar=("A", "B"),
        nargs=2,
        help="what changed between two: names, documents or receipts; exit code 1 where something got worse",
    )
    options.json(parser, "the same as --format json, on one line")


def run(arguments: argparse.Namespace) -> int:
    """Return 1 where a comparison found something worse, else 0."""
    from importer.cli import reporting

    return reporting.run(arguments)
