"""``importer keys``: the settings that ``--set`` accepts."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the form."""
    options.json(parser, "one line of JSON per key")


def run(arguments: argparse.Namespace) -> None:
    """Print each key with the type of its value, and what it is."""
    from importer.app.preferences import settable
    from importer.cli import output

    keys = settable()
    if arguments.json:
        output.json_lines([{"key": key, "type": kind, "description": text} for key, kind, text in keys])
    else:
        output.console().print(output.table(("key", "type", "description"), keys))
