"""The service: ``importer serve``, and ``importer admin`` for its administration. Settings are options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from importer import config
from importer.cli import options
from importer.cli.commands import Action, add_actions

if TYPE_CHECKING:
    from importer.service.settings import Settings


REST = """\
The file has all settings, and keep_jobs_days beside these. The variable of a
setting is IMPORTER_SERVE_ and its name in capitals.
"""


def add_settings(parser: argparse.ArgumentParser, command: str) -> None:
    """Add an option for each setting of a command; each source is checked alike, so none is checked here."""
    from importer.service.settings import all_fields, default

    parser.add_argument("--config", metavar="FILE", help="settings as TOML, by the options' names")
    parser.epilog = REST
    for one in all_fields():
        if command not in one.metadata.get("flags", (command,)):
            continue
        name, kind = f"--{one.name.replace('_', '-')}", type(default(one))
        text = str(one.metadata["help"])
        more = f" (default: {default(one)})" if default(one) not in ("", []) else ""
        if kind is bool:
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=None, help=text)
        elif kind is list:
            parser.add_argument(name, action="append", metavar="NAME", help=text)
        else:
            parser.add_argument(name, metavar="N" if kind is int else "TEXT", help=text + more)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings; raises ServiceError("bad-setting")."""
    from importer.service import settings

    return settings.read(vars(arguments), arguments.config)


def add_arguments_serve(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting."""
    add_settings(parser, "serve")


def run_serve(arguments: argparse.Namespace) -> None:
    """Answer requests and run jobs until a signal ends it; a project's settings are for its commands."""
    config.PROJECT.set({})
    settings = settings_of(arguments)  # before the libraries of the server, for a mistake in one
    from importer.service.server import serve

    serve(settings)


def add_arguments_admin(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    add_actions(parser, ADMIN)


def _add_worker(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting."""
    add_settings(parser, "worker")


def _run_worker(arguments: argparse.Namespace) -> None:
    """Run jobs until a signal ends it."""
    settings = settings_of(arguments)
    from importer.service.server import work

    work(settings)


def _add_api_keys(parser: argparse.ArgumentParser) -> None:
    """Add the three actions."""
    actions = parser.add_subparsers(dest="action", metavar="create|list|revoke", required=True)
    create = actions.add_parser("create", help="create a key; it is shown once")
    create.add_argument("name", metavar="NAME", help="the owner")
    create.add_argument("--scope", action="append", choices=("read", "import", "approve"), help="repeatable")
    listed = actions.add_parser("list", help="all keys, without their secrets")
    options.json(listed, "one line of JSON per key")
    revoke = actions.add_parser("revoke", help="end a key")
    revoke.add_argument("key", metavar="ID")
    for parser_ in (create, listed, revoke):
        parser_.add_argument("--database", help="sqlite:///FILE or postgresql://…")
        parser_.add_argument("--config", metavar="FILE", help="settings as TOML")


def _run_api_keys(arguments: argparse.Namespace) -> None:
    """Make, list or revoke keys; raises ServiceError."""
    from importer.cli import output
    from importer.cli.importing import user
    from importer.service.settings import without_password
    from importer.storage import keys
    from importer.storage.audit import AuditContext
    from importer.storage.schema import open_database

    url = settings_of(arguments).url
    database, who = open_database(url), user()
    with database.writing() as connection:
        if arguments.action == "create":
            scopes = arguments.scope or ["read"]
            output.line(keys.create(connection, arguments.name, scopes, AuditContext(who, "create key")))
            output.note(
                f"The key is for servers with the database {without_password(url)}; it is shown once."
            )
        elif arguments.action == "revoke":
            keys.revoke(connection, arguments.key, AuditContext(who, "revoke key"))
            output.note(f"Revoked {arguments.key}.")
        elif arguments.json:
            output.json_lines(keys.listed(connection))
        else:
            rows = [tuple(output.value(v) for v in one.values()) for one in keys.listed(connection)]
            heads = ("id", "name", "scopes", "made", "by", "revoked")
            output.console().print(output.table(heads, rows))


def _add_backup(parser: argparse.ArgumentParser) -> None:
    """Add the file, and where the database is."""
    parser.add_argument("file", metavar="FILE", help="the new file; an existing one is not overwritten")
    parser.add_argument("--database", help="sqlite:///FILE")
    parser.add_argument("--config", metavar="FILE", help="settings as TOML")


def _run_backup(arguments: argparse.Namespace) -> None:
    """Copy an SQLite gallery; raises UsageError, ServiceError and DocumentError("cannot-write")."""
    from pathlib import Path

    from importer.cli import output
    from importer.storage.database import backup

    target = Path(arguments.file)
    size = backup(settings_of(arguments).url, target)
    output.note(f"Wrote {target}, {size:,} bytes.")


LAST = 10**18  # no entry has a higher id


def _add_audit(parser: argparse.ArgumentParser) -> None:
    """Add the first entry, and where the database is."""
    parser.add_argument(
        "--after", metavar="ID", default="0", help="the entries after this one (default: all)"
    )
    parser.add_argument("--database", help="sqlite:///FILE or postgresql://…")
    parser.add_argument("--config", metavar="FILE", help="settings as TOML")


def _run_audit(arguments: argparse.Namespace) -> None:
    """Print one object for each entry; raises ServiceError."""
    from contextlib import closing
    from dataclasses import asdict

    from importer import config
    from importer.cli import output
    from importer.errors import ServiceError
    from importer.storage import audit
    from importer.storage.database import need_file
    from importer.storage.schema import open_database

    after = config.number(arguments.after, LAST, 0)
    if after is None:
        raise ServiceError("bad-setting", place="--after", problem="it is no entry's id")
    url = settings_of(arguments).url
    need_file(url)  # a wrong path makes no database
    database = open_database(url)
    with closing(database), database.reading() as connection:
        output.json_lines(asdict(one) for one in audit.exported(connection, after))


def _add_task(parser: argparse.ArgumentParser) -> None:
    """Add nothing: stdin has the task."""


def _run_task(arguments: argparse.Namespace) -> None:
    """Run the task and write its result; raises RemoteError("bad-bundle")."""
    from importer.cli import remote_task

    del arguments
    remote_task.run()


ADMIN = {
    "worker": Action("run the service's jobs on this machine as well", _add_worker, _run_worker),
    "api-keys": Action("manage the API keys of the service", _add_api_keys, _run_api_keys),
    "backup": Action("copy the service's database while it is in use", _add_backup, _run_backup),
    "audit": Action("print the service's audit log as lines of JSON", _add_audit, _run_audit),
    "run-task": Action("run a task of 'validate --on' that stdin has; its far end", _add_task, _run_task),
}
