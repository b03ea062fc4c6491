"""``importer approve NAME``: what ``review NAME --approve`` does."""

from __future__ import annotations

import argparse

from importer.cli.commands.review import add_document, run

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document."""
    parser.set_defaults(approve=True, reject=None, explain=False)
    add_document(parser)
