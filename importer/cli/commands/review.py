"""``importer review NAME``: accept, edit or reject one document."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document, and the review to record without questions."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--approve", action="store_true", help="approve the present content")
    group.add_argument("--reject", metavar="NOTE", help="reject the document, with this note")
    options.explain(parser)
    add_document(parser)


def add_document(parser: argparse.ArgumentParser) -> None:
    """Add the document, a note, and the digest that was seen."""
    parser.add_argument("name", metavar="NAME")
    options.folder(parser)
    parser.add_argument("--note", help="a note on the approval")
    parser.add_argument("--digest", help="refuse if the document's digest has changed")
    options.json(parser, "what a reviewer is shown as one line of JSON")


def run(arguments: argparse.Namespace) -> None:
    """Review the document; raises ImporterError."""
    from importer.cli import reviewing

    reviewing.review(arguments)
