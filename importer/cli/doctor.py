"""What the doctor finds, for a person or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from importer.cli import messages, show
from importer.engines import doctor
from importer.engines.doctor import CheckSkipped, DoctorCase, DoctorFinding, Trouble
from importer.errors import UsageError
from importer.hub.local import ANYWHERE


def run(arguments: argparse.Namespace) -> int:
    """The command ``doctor [NAME|FILE]``; 1 where something would stop a run."""
    found = list(_of_document(arguments) if arguments.name is not None else _of_machine(arguments))
    if arguments.json:
        for one in found:
            show.json_line(show.json_text(one.to_json(messages.text)))
    else:
        rows = [_row(one) for one in found if not isinstance(one.result, CheckSkipped)]
        show.console().print(show.table(("about", "check", "verdict", "says", "remedy"), rows))
    stopping = [one for one in found if one.stops]
    if stopping:
        many = f"{len(stopping)} of {len(found)} checks found what stops a run"
        show.note(f"{many}: {', '.join(f'{one.subject}: {one.check}' for one in stopping)}.")
    return 1 if stopping else 0


def _of_machine(arguments: argparse.Namespace) -> Iterable[DoctorFinding]:
    if arguments.engine is not None:
        raise UsageError("bad-option", option="--engine", problem="it is for a document; name one")
    return doctor.everything(DoctorCase(ask=arguments.check_token))


def _of_document(arguments: argparse.Namespace) -> Iterable[DoctorFinding]:
    from importer.app.validate import inspect
    from importer.config_file.store import named

    _, stored = named(arguments.name, arguments.output)
    stored.check()
    case = inspect(stored, arguments.engine or stored.backend, ANYWHERE, ask=arguments.check_token)
    return doctor.of_document(case)


def _row(one: DoctorFinding) -> tuple[str, ...]:
    told = one.to_json(messages.text)
    verdict = one.result.severity if isinstance(one.result, Trouble) else told["verdict"]
    return one.subject, one.check, verdict, told["says"], told["remedy"]
