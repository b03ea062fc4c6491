"""``importer backup``: a copy of the service's database while it is in use."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file, and where the database is."""
    parser.add_argument("file", metavar="FILE", help="the new file; an existing one is not overwritten")
    parser.add_argument("--database", help="sqlite:///FILE")
    parser.add_argument("--config", metavar="FILE", help="settings as TOML")


def run(arguments: argparse.Namespace) -> None:
    """Copy an SQLite gallery; raises UsageError, ServiceError and DocumentError("cannot-write")."""
    from pathlib import Path

    from importer.cli import output
    from importer.cli.service_options import settings_of
    from importer.storage.database import backup

    target = Path(arguments.file)
    size = backup(settings_of(arguments).settings.url, target)
    output.note(f"Wrote {target}, {size:,} bytes.")
