"""``importer recheck [NAME...]``: what importing again would change, and why; writes nothing."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the documents."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="documents (default: all in the folder)")
    options.folder(parser)
    options.offline(parser)
    options.json(parser, "one line of JSON per document")


def run(arguments: argparse.Namespace) -> int:
    """Return 1 where a document would change, else 0."""
    from importer.cli import rechecking

    return rechecking.recheck(arguments)
