"""``importer why NAME [KEY]``: the facts behind a value, and the next candidate with its first loss."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from importer.cli import options

if TYPE_CHECKING:
    from importer.app.why import Explanation

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
        for text in _lines(one, whole=arguments.all):
            output.line(output.plain(text))


def _lines(one: Explanation, *, whole: bool) -> Iterator[str]:
    """Yield the value, its facts, and the values that were not taken."""
    from importer.cli import output

    value = "none" if one.value is None else output.value(one.value).replace("\n", ", ")
    yield f"{one.key}: {value}, {one.status}"
    yield from (f"  because  {fact}" for fact in one.facts[: None if whole else FACTS])
    for other in one.candidates[: None if whole else CANDIDATES]:
        yield f"  not {output.value(other.value)}  {other.why}"
    hidden = len(one.candidates) - CANDIDATES
    if hidden > 0 and not whole:
        yield f"  and {hidden} more: --all prints them"
