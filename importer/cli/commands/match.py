"""``importer match NAME...``: the family, parsers and sampling that the tables have for a name."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names."""
    parser.add_argument("names", nargs="+", metavar="NAME")
    options.json(parser, "one line of JSON per name")


def run(arguments: argparse.Namespace) -> None:
    """Print a row for each name, from the tables alone."""
    from importer.cli import output
    from importer.signals.family import match_names

    matches = match_names(arguments.names)
    if arguments.json:
        output.json_lines(matches)
        return
    rows = [
        (
            m["model_id"],
            *(output.value(m[k]) for k in ("family", "tool_parser", "reasoning_parser")),
            ", ".join(f"{k} {v}" for k, v in (m["sampling"] or {}).items()),
        )
        for m in matches
    ]
    output.console().print(
        output.table(("model", "family", "tool parser", "reasoning parser", "sampling"), rows)
    )
