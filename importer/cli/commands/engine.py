"""``importer engine install|list|remove``: the engines' environments."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the three actions."""
    from importer.engines import CHOSEN, ENGINES

    names = ", ".join((*dict(ENGINES.every()), *CHOSEN))
    actions = parser.add_subparsers(dest="action", metavar="install|list|remove", required=True)
    for action, text in (
        ("install", "install an engine (pinned; does nothing when it is there)"),
        ("remove", "remove an engine's environment"),
    ):
        actions.add_parser(action, help=text).add_argument("engine", metavar="ENGINE", help=names)
    options.json(actions.add_parser("list", help="engines, versions, places"), "one line of JSON per engine")


def run(arguments: argparse.Namespace) -> None:
    """Install, list or remove; raises EngineError."""
    {"install": _install, "remove": _remove, "list": _list}[arguments.action](arguments)


def _install(arguments: argparse.Namespace) -> None:
    from importer.cli import output
    from importer.engines import get, install

    with output.progress(f"installing {arguments.engine}") as progress:
        installed = install.install(get(arguments.engine), progress)
    output.note(f"{installed.engine} {installed.version} is installed in {installed.root}.")


def _remove(arguments: argparse.Namespace) -> None:
    from importer.cli import output
    from importer.engines import get, install

    removed = install.remove(get(arguments.engine))
    output.note(f"Removed {arguments.engine}." if removed else f"{arguments.engine} was not installed.")


def _list(arguments: argparse.Namespace) -> None:
    from importer.cli import output
    from importer.engines import ENGINES, get, install

    rows = []
    for name, _ in ENGINES.every():
        installed = install.find(get(name))
        version, python = (None, None) if installed is None else (installed.version, str(installed.python))
        rows.append({"engine": name, "version": version, "python": python})
    output.parts(ENGINES, rows, ("engine", "version", "python"), json=arguments.json)
