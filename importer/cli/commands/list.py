"""``importer list``: the documents of a folder with their states."""

from __future__ import annotations

import argparse
from pathlib import Path

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder."""
    options.folder(parser)
    options.json(parser, "one line of JSON per document")


def run(arguments: argparse.Namespace) -> None:
    """Print a row for each document, those that cannot be read included; documents of one model together."""
    from importer.cli import show
    from importer.config_file.review import state_of, together
    from importer.config_file.store import Store

    store = Store(Path(arguments.folder))
    states = together([state_of(store, name) for name in store.names()])
    if arguments.json:
        show.json_lines(states)
        return
    cells = [{**state, "variants": ", ".join(state["variants"]) or None} for state in states]
    rows = [tuple(show.value(v) for v in state.values()) for state in cells]
    heads = ("name", "model", "revision", "backend", "review", "validation", "variants")
    show.console().print(show.table(heads, rows))
