"""Commands of engines: validate, engine, doctor, parsers, devices."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from importer import config
from importer.cli import messages, options
from importer.errors import UsageError

if TYPE_CHECKING:
    from importer.engines.doctor import DoctorFinding


def add_arguments_validate(parser: argparse.ArgumentParser) -> None:
    """Add the document, its engine, and a part of a validation."""
    parser.add_argument("name", metavar="NAME|FILE", nargs="?")
    options.folder(parser)
    parser.add_argument(
        "--engine",
        choices=options.Names("engines", config.NAMES),
        help="an engine other than the document's",
    )
    parser.add_argument("--port", type=options.port, help="the engine's port (default: a free one)")
    parser.add_argument("--fetch", action="store_true", help="fetch the weights if they are not on this disk")
    parser.add_argument(
        "--time-limit", type=options.count, metavar="SECONDS", help="seconds for all probes (default: 600)"
    )
    options.json(parser, "the report as one line of JSON")
    parser.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help="also write a report: .html, .xml (JUnit), .json or .txt; repeatable",
    )
    parser.add_argument(
        "--score",
        metavar="N",
        nargs="?",
        const=1,
        default=0,
        type=options.answers,
        help="also measure how well the model calls tools: N answers to each of 40 questions (default 1)",
    )
    parser.add_argument(
        "--require",
        metavar="ABILITY=SHARE",
        action="append",
        default=[],
        help="the share of answers that must show an ability of the model, such as tools=0.9; repeatable",
    )
    _elsewhere(parser.add_argument_group("on a cluster or another machine"))
    _part(
        parser.add_argument_group(
            "partial runs", "A partial run is not recorded as the document's validation."
        )
    )


def _elsewhere(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--on",
        metavar="COMMAND",
        help="a command that runs the words behind it elsewhere, such as 'ssh gpu1 --'; presets are "
        "ssh:HOST, slurm:PARTITION, k8s:IMAGE, ray:ADDRESS",
    )
    group.add_argument(
        "--on-timeout",
        type=options.count,
        metavar="SECONDS",
        help="how long the run may wait there to start (default: 3600)",
    )


def _part(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--probe",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="these probes only; --list-probes shows all",
    )
    group.add_argument("--list-probes", action="store_true", help="the probes, what they need, their lessons")
    group.add_argument("--prompt", metavar="TEXT|FILE", help="a question of your own, shown with its answer")
    group.add_argument(
        "--tool",
        metavar="FILE",
        action="append",
        default=[],
        help="a tool as OpenAI's JSON, required in the answer to --prompt; repeatable",
    )
    group.add_argument(
        "--against", metavar="URL", help="a server that runs already, such as http://host:8000"
    )
    group.add_argument(
        "--api-key-env", metavar="VARIABLE", help="the environment variable with the server's API key"
    )
    group.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="a header of each request to the server; never printed or stored; repeatable",
    )
    group.add_argument(
        "--header-env",
        metavar="NAME=VARIABLE",
        action="append",
        default=[],
        help="the same, its value from an environment variable; repeatable",
    )
    group.add_argument(
        "--model", metavar="ID", help="the model's name on that server (default: found in its list)"
    )


def run_validate(arguments: argparse.Namespace) -> None:
    """Validate the document; raises ValidationError where a probe did not pass, else AbilityError."""
    from importer.cli import validating

    validating.validate(arguments)


def add_arguments_engine(parser: argparse.ArgumentParser) -> None:
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


def run_engine(arguments: argparse.Namespace) -> None:
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


def add_arguments_doctor(parser: argparse.ArgumentParser) -> None:
    """Add a document, and what else to check."""
    parser.add_argument(
        "name", metavar="NAME|FILE", nargs="?", help="a document (default: this machine, all engines)"
    )
    options.folder(parser)
    parser.add_argument("--engine", choices=config.NAMES, help="an engine other than the document's")
    parser.add_argument("--check-token", action="store_true", help="ask the Hub whether the token is valid")
    options.json(parser, "one line of JSON per check")


def run_doctor(arguments: argparse.Namespace) -> int:
    """Print what was checked; return 1 where something would stop a run."""
    from importer.cli import output
    from importer.engines.doctor import CheckSkipped

    checks = list(_of_document(arguments) if arguments.name is not None else _of_machine(arguments))
    if arguments.json:
        for one in checks:
            output.json_line(one.to_json(messages.text))
    else:
        rows = [_row(one) for one in checks if not isinstance(one.result, CheckSkipped)]
        output.console().print(output.table(("about", "check", "verdict", "message", "remedy"), rows))
    stopping = [one for one in checks if one.stops]
    if stopping:
        many = f"{len(stopping)} of {len(checks)} checks found what stops a run"
        output.note(f"{many}: {', '.join(f'{one.subject}: {one.check}' for one in stopping)}.")
    return 1 if stopping else 0


def _of_machine(arguments: argparse.Namespace) -> Iterable[DoctorFinding]:
    if arguments.engine is not None:
        raise UsageError("bad-option", option="--engine", problem="is for a document; name one")
    from importer.engines import doctor
    from importer.engines.doctor import DoctorCase

    return doctor.everything(DoctorCase(ask=arguments.check_token))


def _of_document(arguments: argparse.Namespace) -> Iterable[DoctorFinding]:
    from importer.app.validate import inspect
    from importer.config_file.store import named
    from importer.engines import doctor
    from importer.hub.local import ANYWHERE

    _, stored = named(arguments.name, arguments.folder)
    stored.check()
    case = inspect(stored, arguments.engine or stored.backend, ANYWHERE, ask=arguments.check_token)
    return doctor.of_document(case)


def _row(one: DoctorFinding) -> tuple[str, ...]:
    from importer.engines.doctor import Trouble

    members = one.to_json(messages.text)
    verdict = one.result.severity if isinstance(one.result, Trouble) else members["verdict"]
    return one.subject, one.check, verdict, members["message"], members["remedy"]


def add_arguments_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the engine and its version."""
    parser.add_argument("--backend", choices=config.NAMES, help="one engine (default: all)")
    options.of_import(parser, "engine_version", "frontend")
    options.json(parser, "one line of JSON per parser")


def run_parsers(arguments: argparse.Namespace) -> None:
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


def add_arguments_devices(parser: argparse.ArgumentParser) -> None:
    """Add the form."""
    options.json(parser, "one line of JSON per device")


def run_devices(arguments: argparse.Namespace) -> None:
    """Print the devices of each maker: memory, machine, number formats and the source of the figures."""
    print_all(as_json=arguments.json)


def print_all(*, as_json: bool) -> None:
    """Print a table for each maker, or a line of JSON for each device; several are ``8xNAME``."""
    from importer.cli import output
    from importer.memory import devices

    known = devices.known()
    if as_json:
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
