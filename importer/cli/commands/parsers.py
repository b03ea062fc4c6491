"""``importer parsers``: the tool parsers and reasoning parsers of the engines."""

from __future__ import annotations

import argparse

from importer import config
from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the engine and its version."""
    parser.add_argument("--backend", choices=config.NAMES, help="one engine (default: all)")
    options.of_import(parser, "engine_version", "frontend")
    options.json(parser, "one line of JSON per parser")


def run(arguments: argparse.Namespace) -> None:
    """Print each parser with the names of the same class. Raises UsageError for an unknown version."""
    from importer.cli import output
    from importer.engines.registries import load, versions
    from importer.errors import UsageError

    if arguments.engine_version is not None and arguments.backend is None:
        raise UsageError("bad-option", option="--engine-version", problem="is for one engine; add --backend")
    if arguments.frontend is not None and arguments.backend != "vllm":
        raise UsageError("bad-option", option="--frontend", problem="is for vLLM; add --backend vllm")
    names = [arguments.backend] if arguments.backend else [n for n in config.NAMES if versions(n)]
    rows = [
        {"engine": r.engine, "version": r.version, "kind": kind, "parser": name, "aliases": entry.aliases}
        for r in (load(name, arguments.engine_version, arguments.frontend) for name in names)
        for kind, entries in r.entries.items()
        for name, entry in entries.items()
    ]
    if arguments.json:
        output.json_lines(rows)
        return
    cells = [
        (f"{r['engine']} {r['version']}", str(r["kind"]), str(r["parser"]), ", ".join(r["aliases"]))
        for r in rows
    ]
    output.console().print(output.table(("engine", "kind", "parser", "the same"), cells))
