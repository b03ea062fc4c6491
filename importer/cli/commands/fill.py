"""``importer fill FILE``: add to a hand-written document what it leaves out."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file, and what its document is for."""
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--dry-run", action="store_true", help="show the difference, write nothing")
    options.of_import(
        parser, "engine_version", "device", "memory", "goal", "concurrency", "context", "offline"
    )
    options.json(parser, "what was added as one line of JSON")


def run(arguments: argparse.Namespace) -> None:
    """Fill the file; raises ImporterError."""
    from importer.cli import filling

    filling.run(arguments)
