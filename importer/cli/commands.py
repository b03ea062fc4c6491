"""The small commands; one function each, registered below."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer.cli import show
from importer.errors import DocumentError
from importer.reports import report_model, terminal

if TYPE_CHECKING:
    from importer.config_file.store import Store


def fill(arguments: argparse.Namespace) -> None:
    """Add to a hand-written document what it leaves out."""
    from importer.cli.filling import run

    run(arguments)


def match(arguments: argparse.Namespace) -> None:
    """What the tables alone say of a name; no network."""
    from importer.signals.family import match_names

    found = match_names(arguments.names)
    if arguments.json:
        _lines(found)
        return
    rows = [
        (
            m["model_id"],
            *(show.value(m[k]) for k in ("family", "tool_parser", "reasoning_parser")),
            ", ".join(f"{k} {v}" for k, v in (m["sampling"] or {}).items()),
        )
        for m in found
    ]
    show.console().print(show.table(("model", "family", "tool parser", "reasoning parser", "sampling"), rows))


def list_documents(arguments: argparse.Namespace) -> None:
    """The documents of a folder with their states."""
    store = _store(arguments)
    found = [_state(store, name) for name in store.names()]
    if arguments.json:
        _lines(found)
        return
    rows = [tuple(show.value(v) for v in d.values()) for d in found]
    show.console().print(show.table(("name", "model", "revision", "backend", "review", "validation"), rows))


def show_document(arguments: argparse.Namespace) -> None:
    """One document with its decisions and probes."""
    store = _store(arguments)
    stored = store.load(arguments.name)
    receipt = stored.need_receipt()
    state = _state(store, stored.name)
    if arguments.json:
        told = {**state, "document": stored.data, "receipt": json.loads(receipt.to_text())}
        show.json_line(show.json_text(told))
        return
    console = show.console()
    show.line(show.plain("\n".join(stored.text.rstrip().splitlines())))
    console.print(show.decisions(receipt.decisions))
    if receipt.fit is not None:
        console.print(show.fit(receipt.fit))
    if receipt.validation is not None:
        console.print(
            terminal.outcomes(report_model.run(receipt.validation, stored.digest).found, console.width)
        )
    show.line(f"review: {state['review']}; validation: {state['validation']}")
    if receipt.partial is not None:
        show.note(f"A part was asked apart: 'importer report {stored.name}' tells it.")


def review(arguments: argparse.Namespace) -> None:
    """Show a document, ask what to do with it, or say it outright."""
    from importer.cli.reviewing import review as run

    run(arguments)


def recheck(arguments: argparse.Namespace) -> int:
    """What importing again would change; 1 where anything would."""
    from importer.cli.rechecking import recheck as run

    return run(arguments)


def validate(arguments: argparse.Namespace) -> None:
    """Run a document and probe it."""
    from importer.cli.validating import validate as run

    run(arguments)


def report(arguments: argparse.Namespace) -> int:
    """A document's validations told to others, or two of them compared."""
    from importer.cli.reporting import run

    return run(arguments)


def export(arguments: argparse.Namespace) -> None:
    """Write a document for another consumer."""
    from importer.cli.exporting import run

    run(arguments)


def engine(arguments: argparse.Namespace) -> None:
    """Install, remove or list engines."""
    from importer.engines import ENGINES, get, install

    if arguments.action == "install":
        with show.progress(f"installing {arguments.engine}") as progress:
            installed = install.install(get(arguments.engine), progress)
        show.note(f"{installed.engine} {installed.version} is installed in {installed.root}.")
    elif arguments.action == "remove":
        gone = install.remove(get(arguments.engine))
        show.note(f"Removed {arguments.engine}." if gone else f"{arguments.engine} was not installed.")
    else:
        found = []
        for name in ENGINES:
            there = install.find(get(name))
            found.append(
                {"engine": name, "version": there and there.version, "python": there and str(there.python)}
            )
        if arguments.json:
            _lines(found)
        else:
            rows = [tuple(show.value(v) for v in f.values()) for f in found]
            show.console().print(show.table(("engine", "version", "python"), rows))


def doctor(arguments: argparse.Namespace) -> int:
    """What would stand in the way of a run; 1 where anything would."""
    from importer.cli.doctor import run

    return run(arguments)


def serve(arguments: argparse.Namespace) -> None:
    """The gallery service."""
    from importer.cli.serving import serve as run

    run(arguments)


def worker(arguments: argparse.Namespace) -> None:
    """A process that runs the service's jobs."""
    from importer.cli.serving import worker as run

    run(arguments)


def keys(arguments: argparse.Namespace) -> None:
    """API keys."""
    from importer.cli.serving import keys as run

    run(arguments)


def _store(arguments: argparse.Namespace) -> Store:
    from importer.config_file.store import Store

    return Store(Path(arguments.output))


def _state(store: Store, name: str) -> dict[str, Any]:
    """One row of the list; a document that cannot be read is one, too."""
    from importer.config_file.review import row

    try:
        stored = store.load(name)
    except DocumentError:
        return {
            "name": name,
            "model": None,
            "revision": None,
            "backend": None,
            "review": "invalid",
            "validation": "never",
        }
    return row(stored)


def _lines(items: list[dict[str, Any]]) -> None:
    for item in items:
        show.json_line(show.json_text(item))


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int | None]] = {
    "fill": fill,
    "match": match,
    "list": list_documents,
    "show": show_document,
    "review": review,
    "approve": review,
    "recheck": recheck,
    "validate": validate,
    "report": report,
    "export": export,
    "engine": engine,
    "doctor": doctor,
    "serve": serve,
    "worker": worker,
    "keys": keys,
}
