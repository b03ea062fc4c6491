"""``importer audit``: the audit log as lines of JSON, the oldest entry first."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the first entry, and where the database is."""
    parser.add_argument(
        "--after", metavar="ID", default="0", help="the entries behind this one (default: all)"
    )
    parser.add_argument("--database", help="sqlite:///FILE or postgresql://…")
    parser.add_argument("--config", metavar="FILE", help="settings as TOML")


def run(arguments: argparse.Namespace) -> None:
    """Print one object for each entry; raises ServiceError."""
    from contextlib import closing
    from dataclasses import asdict

    from importer.cli import show
    from importer.cli.service_options import settings_of
    from importer.errors import ServiceError
    from importer.storage import audit
    from importer.storage.migrations import open_database

    if not (arguments.after.isascii() and arguments.after.isdecimal() and len(arguments.after) < 19):
        raise ServiceError("bad-setting", place="--after", problem="it is no entry's id")
    database = open_database(settings_of(arguments).settings.url)
    with closing(database), database.reading() as connection:
        show.json_lines(asdict(one) for one in audit.exported(connection, int(arguments.after)))
