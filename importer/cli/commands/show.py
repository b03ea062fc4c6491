"""``importer show NAME``: one document with its decisions and probes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document's name."""
    parser.add_argument("name", metavar="NAME")
    options.folder(parser)
    options.json(parser, "the document and its receipt as one line of JSON")


def run(arguments: argparse.Namespace) -> None:
    """Print the text, every decision with its reasons, the fit, and every probe. Raises DocumentError."""
    from importer.cli import show
    from importer.config_file.review import state_of
    from importer.config_file.store import Store
    from importer.reports import report_model, terminal

    store = Store(Path(arguments.folder))
    stored = store.load(arguments.name)
    receipt = stored.need_receipt()
    state = state_of(store, stored.name)
    if arguments.json:
        data = {**state, "document": stored.data, "receipt": json.loads(receipt.to_text())}
        show.json_line(show.json_text(data))
        return
    console = show.console()
    show.line(show.plain("\n".join(stored.text.rstrip().splitlines())))
    console.print(show.decisions(receipt.decisions))
    if receipt.fit is not None:
        console.print(show.fit(receipt.fit))
        if (ways := show.plans(receipt.fit)) is not None:
            console.print(ways)
    if receipt.validation is not None:
        console.print(
            terminal.outcomes(report_model.run(receipt.validation, stored.digest).outcomes, console.width)
        )
    show.line(f"review: {state['review']}; validation: {state['validation']}")
    if receipt.partial is not None:
        show.note(f"The last partial run is in 'importer report {stored.name}'.")
