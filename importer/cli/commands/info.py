"""``importer info``: the settings, the devices and the parsers that are known, and what the tables match."""

from __future__ import annotations

import argparse

from importer import backends
from importer.cli import options
from importer.cli.commands import Action, add_actions
from importer.errors import UsageError


def add_arguments_info(parser: argparse.ArgumentParser) -> None:
    """Add the four look-ups."""
    add_actions(parser, ACTIONS)


def _add_form(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    options.json(parser, "one line of JSON for each")


def _run_keys(arguments: argparse.Namespace) -> None:
    """Print each key with the type of its value, and what it is."""
    from importer.app.preferences import settable
    from importer.cli import output

    keys = settable()
    if arguments.json:
        output.json_lines([{"key": key, "type": kind, "description": text} for key, kind, text in keys])
    else:
        output.console().print(output.table(("key", "type", "description"), keys))


def _run_devices(arguments: argparse.Namespace) -> None:
    """Print the devices of each maker: memory, machine, number formats and the source of the figures."""
    from importer.cli import output
    from importer.memory import devices

    known = devices.known()
    if arguments.json:
        output.json_lines([device.to_json() for device in known.values()])
        return
    heads = ("device", "memory", "known", "a machine", "formats", "source")
    for kind, maker in devices.MAKERS.items():
        rows = [
            (
                name,
                "this machine's" if d.memory is None else f"{d.memory / devices.GIB:g} GiB",
                devices.BASES[d.basis],
                str(d.node),
                ", ".join(sorted(d.native)),
                d.source if d.engine is None else f"{d.source}; served by {d.engine}",
            )
            for name, d in sorted(known.items(), key=lambda item: item[1].memory or 0)
            if d.kind == kind
        ]
        output.console().print(f"{maker} ({kind})")
        output.console().print(output.table(heads, rows))


def _add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the engine and its version."""
    parser.add_argument("--backend", choices=backends.NAMES, help="one engine (default: all)")
    options.of_import(parser, "engine_version", "frontend")
    options.json(parser, "one line of JSON per parser")


def _run_parsers(arguments: argparse.Namespace) -> None:
    """Print each parser with the names of the same class. Raises UsageError for an unknown version."""
    from importer.cli import output
    from importer.engines.registries import load, versions

    if arguments.engine_version is not None and arguments.backend is None:
        raise UsageError("bad-option", option="--engine-version", problem="is for one engine; add --backend")
    if arguments.frontend is not None and not backends.of(arguments.backend).frontends:
        raise UsageError("bad-option", option="--frontend", problem="is for vLLM; add --backend vllm")
    names = [arguments.backend] if arguments.backend else [n for n in backends.NAMES if versions(n)]
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


def _add_match(parser: argparse.ArgumentParser) -> None:
    """Add the names."""
    parser.add_argument("names", nargs="+", metavar="NAME", type=options.filled)
    options.json(parser, "one line of JSON per name")


def _run_match(arguments: argparse.Namespace) -> None:
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


ACTIONS = {
    "keys": Action("list the settings that --set accepts", _add_form, _run_keys),
    "devices": Action("list the devices that --device accepts", _add_form, _run_devices),
    "parsers": Action("list the parsers of an engine", _add_parsers, _run_parsers),
    "match": Action("match names against the tables alone", _add_match, _run_match),
}
