"""``importer export NAME|FILE FORMAT``: a document for another consumer."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document, the format and the file."""
    parser.add_argument("name", metavar="NAME|FILE", nargs="?")
    parser.add_argument("format", metavar="FORMAT", nargs="?", help="one of those that --list shows")
    parser.add_argument("--list", action="store_true", help="the formats and what reads them")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE|DIR",
        help="the file, or the folder for several, to write (default: standard output)",
    )
    options.folder(parser)
    parser.add_argument(
        "--device", choices=("gpu", "cpu"), help="hardware for vLLM (default: the document's device)"
    )
    parser.add_argument("--approved-only", action="store_true", help="refuse a document without approval")
    options.json(parser, "files and what they lack as one line of JSON")


def run(arguments: argparse.Namespace) -> None:
    """Export the document; raises UsageError and DocumentError."""
    from importer.cli import exporting

    exporting.run(arguments)
