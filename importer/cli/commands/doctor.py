"""``importer doctor [NAME|FILE]``: what would stop a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from importer import config
from importer.cli import messages, options
from importer.errors import UsageError

if TYPE_CHECKING:
    from importer.engines.doctor import DoctorFinding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a document, and what else to check."""
    parser.add_argument(
        "name", metavar="NAME|FILE", nargs="?", help="a document (default: this machine, all engines)"
    )
    options.folder(parser)
    parser.add_argument("--engine", choices=config.NAMES, help="an engine other than the document's")
    parser.add_argument("--check-token", action="store_true", help="ask the Hub whether the token is valid")
    options.json(parser, "one line of JSON per check")


def run(arguments: argparse.Namespace) -> int:
    """Print what was checked; return 1 where something would stop a run."""
    from importer.cli import output
    from importer.engines.doctor import CheckSkipped

    checks = list(_of_document(arguments) if arguments.name is not None else _of_machine(arguments))
    if arguments.json:
        for one in checks:
            output.json_line(output.json_text(one.to_json(messages.text)))
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
