"""``importer recheck [NAME...]``: what importing again would change, or another version of the engine."""

from __future__ import annotations

import argparse

from importer.cli import options
from importer.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the documents, and the engine's version."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="documents (default: all in the folder)")
    parser.add_argument("--all", action="store_true", help="all documents of the folder")
    parser.add_argument(
        "--engine",
        metavar="ENGINE@VERSION",
        help="what changes with this version of an engine, such as vllm@0.33.0; no request to the Hub",
    )
    parser.add_argument(
        "--apply", action="store_true", help="with --engine: write the documents for that version"
    )
    parser.add_argument(
        "--on-conflict",
        choices=("mine", "theirs"),
        help="with --apply: on a conflict keep mine or theirs (default: report only)",
    )
    options.folder(parser)
    options.of_import(parser, "offline")
    options.json(parser, "one line of JSON per document")


def run(arguments: argparse.Namespace) -> int:
    """Return 1 where a document would change, else 0."""
    from importer.cli import rechecking, upgrading

    if arguments.all and arguments.names:
        raise UsageError("bad-option", option="--all", problem="it takes no names beside it")
    if arguments.engine is not None:
        return upgrading.recheck(arguments)
    for option in ("apply", "on_conflict"):
        if getattr(arguments, option):
            flag = f"--{option.replace('_', '-')}"
            raise UsageError("bad-option", option=flag, problem="it needs --engine ENGINE@VERSION")
    return rechecking.recheck(arguments)
