"""``importer why NAME [KEY]``: the facts behind a value, and the next candidate with its first loss."""

from __future__ import annotations

import argparse
from pathlib import Path

from importer.cli import options

FACTS, CANDIDATES = 3, 1  # of a value; --all prints every one


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document's name and the key."""
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("key", metavar="KEY", nargs="?", help="one value, such as tool_parser or temperature")
    options.folder(parser)
    options.json(parser, "one line of JSON for each value, with every fact and candidate")
    parser.add_argument("--all", action="store_true", help="print every fact and every candidate")


def run(arguments: argparse.Namespace) -> None:
    """Print a paragraph for each value. Raises DocumentError."""
    from importer.app.why import explanations
    from importer.cli import output
    from importer.config_file.store import Store

    found = explanations(Store(Path(arguments.folder)).load(arguments.name), arguments.key)
    if arguments.json:
        output.json_lines(one.to_json() for one in found)
        return
    for one in found:
        lines = one.explain() if arguments.all else one.explain(FACTS, CANDIDATES)
        for text in lines:
            output.line(output.plain(text))
        hidden = 0 if arguments.all else len(one.candidates) - CANDIDATES
        if hidden > 0:
            output.line(f"  and {hidden} more: --all prints them")
