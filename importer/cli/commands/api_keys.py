"""``importer api-keys create|list|revoke``: the API keys of the service."""

from __future__ import annotations

import argparse

from importer.cli import options
from importer.cli.service_options import settings_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the three actions."""
    actions = parser.add_subparsers(dest="action", metavar="create|list|revoke", required=True)
    create = actions.add_parser("create", help="create a key; it is shown once")
    create.add_argument("name", metavar="NAME", help="the owner")
    create.add_argument(
        "--scope",
        action="append",
        choices=("read", "import", "approve", "publish", "admin"),
        help="repeatable",
    )
    listed = actions.add_parser("list", help="all keys, without their secrets")
    options.json(listed, "one line of JSON per key")
    revoke = actions.add_parser("revoke", help="end a key")
    revoke.add_argument("key", metavar="ID")
    for parser_ in (create, listed, revoke):
        parser_.add_argument("--database", help="sqlite:///FILE or postgresql://…")
        parser_.add_argument("--config", metavar="FILE", help="settings as TOML")


def run(arguments: argparse.Namespace) -> None:
    """Make, list or revoke keys; raises ServiceError."""
    from importer.cli import output
    from importer.cli.importing import user
    from importer.service.settings import without_password
    from importer.storage import keys
    from importer.storage.audit import AuditContext
    from importer.storage.migrations import open_database

    url = settings_of(arguments).settings.url
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
