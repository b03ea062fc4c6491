"""Commands of engines: fit, validate, run, engine, doctor."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from importer import backends
from importer.cli import messages, options
from importer.cli.commands import Action, add_actions
from importer.errors import UsageError

if TYPE_CHECKING:
    from importer.engines.doctor import DoctorFinding


def add_arguments_fit(parser: argparse.ArgumentParser) -> None:
    """Add the document, and what is asked of it."""
    parser.add_argument("name", metavar="NAME|FILE", type=options.document)
    options.folder(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--devices", nargs="?", const=(), metavar="MAKER,...", type=options.makers,
        help="print what each device holds of it, or those of some makers, such as nvidia,apple",
    )  # fmt: skip
    what.add_argument(
        "--measure",
        action="store_true",
        help="start its engine with random weights, and choose context and layout by the memory it reports",
    )
    what.add_argument(
        "--log", metavar="FILE", help="choose them by the log of a start of vLLM that you have; '-' is stdin"
    )
    options.json(parser, "one line of JSON")


def add_arguments_validate(parser: argparse.ArgumentParser) -> None:
    """Add the document, its engine, and a part of a validation."""
    parser.add_argument("name", metavar="NAME|FILE", type=options.document, nargs="?")
    options.folder(parser)
    _of_start(parser)
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
        "--thorough",
        action="store_true",
        help="ask for each ability with tools until its interval is ± 5 points, up to 400 questions; "
        "the next such run goes on where one was stopped",
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
    group.add_argument(
        "--against", metavar="URL", help="a server that runs already, such as http://host:8000"
    )
    group.add_argument(
        "--api-key-env", metavar="VARIABLE", help="the environment variable with the server's API key"
    )
    group.add_argument(
        "--header-env",
        metavar="NAME=VARIABLE",
        action="append",
        default=[],
        help="a header of each request to the server, its value from an environment variable; repeatable",
    )
    group.add_argument(
        "--model", metavar="ID", help="the model's name on that server (default: found in its list)"
    )


def _of_start(parser: argparse.ArgumentParser) -> None:
    """Add the engine of a start, its port, and whether weights are fetched for it."""
    parser.add_argument(
        "--engine",
        choices=options.Names("engines", backends.NAMES),
        help="an engine other than the document's",
    )
    parser.add_argument("--port", type=options.port, help="the engine's port (default: a free one)")
    parser.add_argument("--fetch", action="store_true", help="fetch the weights if they are not on this disk")


def add_arguments_run(parser: argparse.ArgumentParser) -> None:
    """Add the document, its engine, and what to do with it."""
    parser.add_argument("name", metavar="NAME|FILE", type=options.document)
    options.folder(parser)
    _of_start(parser)
    parser.add_argument("--chat", action="store_true", help="answer what you type, a line at a time")


def add_arguments_engine(parser: argparse.ArgumentParser) -> None:
    """Add the three actions."""
    add_actions(parser, ENGINE_ACTIONS)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the engine's name."""
    from importer.engines import CHOSEN, ENGINES

    names = (*dict(ENGINES.every()), *CHOSEN, "vllm-parsers[==VERSION]", "sglang-parsers[==VERSION]")
    parser.add_argument("engine", metavar="ENGINE", help=", ".join(names))


def _add_list(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    options.json(parser, "one line of JSON per engine")


def _install(arguments: argparse.Namespace) -> None:
    from importer.cli import output
    from importer.engines import get, install, parser_sources

    alone = parser_sources.parse(arguments.engine)
    with output.progress(f"installing {arguments.engine}") as progress:
        if alone is not None:
            installed = parser_sources.fetch(*alone, progress)
        else:
            installed = install.install(get(arguments.engine), progress)
    output.note(f"{installed.engine} {installed.version} is installed in {installed.root}.")


def _remove(arguments: argparse.Namespace) -> None:
    from importer.cli import output
    from importer.engines import get, install, parser_sources

    alone = parser_sources.parse(arguments.engine)
    removed = install.remove(get(arguments.engine)) if alone is None else parser_sources.remove(*alone)
    output.note(f"Removed {arguments.engine}." if removed else f"{arguments.engine} was not installed.")


def _list(arguments: argparse.Namespace) -> None:
    from importer.cli import output
    from importer.engines import ENGINES, get, install, parser_sources

    rows = []
    for name, _ in ENGINES.every():
        installed = install.find(get(name))
        version, python = (None, None) if installed is None else (installed.version, str(installed.python))
        rows.append({"engine": name, "version": version, "python": python})
    rows += [
        {"engine": one.engine, "version": one.version, "python": str(one.python)}
        for one in parser_sources.every()
    ]
    output.parts(ENGINES, rows, ("engine", "version", "python"), json=arguments.json)


ENGINE_ACTIONS = {
    "install": Action("install an engine (pinned; does nothing when it is there)", _add_engine, _install),
    "list": Action("engines, versions, places", _add_list, _list),
    "remove": Action("remove an engine's environment", _add_engine, _remove),
}


def add_arguments_doctor(parser: argparse.ArgumentParser) -> None:
    """Add a document, and what else to check."""
    parser.add_argument(
        "name",
        metavar="NAME|FILE",
        type=options.document,
        nargs="?",
        help="a document (default: this machine, all engines)",
    )
    options.folder(parser)
    parser.add_argument("--engine", choices=backends.NAMES, help="an engine other than the document's")
    options.json(parser, "one line of JSON per check")


def run_doctor(arguments: argparse.Namespace) -> int:
    """Print what was checked; return 1 where something would stop a run."""
    from importer.cli import output

    checks = list(_of_document(arguments) if arguments.name is not None else _of_machine(arguments))
    if arguments.json:
        for one in checks:
            output.json_line(one.to_json(messages.text))
    else:
        rows = [_row(one) for one in checks if one.result is not None]
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

    return doctor.everything(DoctorCase())


def _of_document(arguments: argparse.Namespace) -> Iterable[DoctorFinding]:
    from importer.app.validate import inspect
    from importer.document.store import named
    from importer.engines import doctor
    from importer.hub.local import ANYWHERE

    _, stored = named(arguments.name, arguments.folder)
    stored.check()
    case = inspect(stored, arguments.engine or stored.backend, ANYWHERE)
    return doctor.of_document(case)


def _row(one: DoctorFinding) -> tuple[str, ...]:
    members = one.to_json(messages.text)
    return tuple(str(members[key]) for key in ("subject", "check", "verdict", "message", "remedy"))
