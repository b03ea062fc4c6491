"""``importer audit``: the audit log as lines of JSON, the oldest entry first."""

from __future__ import annotations

import argparse

LAST = 10**18  # no entry has a higher id


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the first entry, and where the database is."""
    parser.add_argument(
        "--after", metavar="ID", default="0", help="the entries after this one (default: all)"
    )
    parser.add_argument("--database", help="sqlite:///FILE or postgresql://…")
    parser.add_argument("--config", metavar="FILE", help="settings as TOML")


def run(arguments: argparse.Namespace) -> None:
    """Print one object for each entry; raises ServiceError."""
    from contextlib import closing
    from dataclasses import asdict

    from importer import config
    from importer.cli import output
    from importer.cli.service_options import settings_of
    from importer.errors import ServiceError
    from importer.storage import audit
    from importer.storage.migrations import open_database

    after = config.number(arguments.after, LAST, 0)
    if after is None:
        raise ServiceError("bad-setting", place="--after", problem="it is no entry's id")
    database = open_database(settings_of(arguments).settings.url)
    with closing(database), database.reading() as connection:
        output.json_lines(asdict(one) for one in audit.exported(connection, after))
