"""An option for each setting of the service, and the settings that they make."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.service.settings import Settings, SourcedSettings


REST = """\
The file has all settings, those of the retention (keep_jobs_days and others)
included. The variable of a setting is IMPORTER_SERVE_ and its name in capitals.
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
    parser.add_argument("--show-config", action="store_true", help="print all settings and their sources")


def settings_of(arguments: argparse.Namespace) -> SourcedSettings:
    """Return the settings with their sources; raises ServiceError("bad-setting")."""
    from importer.service import settings

    return settings.read(vars(arguments), arguments.config)


def settings_to_run(arguments: argparse.Namespace) -> Settings | None:
    """Return the settings of a process; ``None`` after ``--show-config`` has printed them."""
    from importer.cli import output

    sourced = settings_of(arguments)
    if not arguments.show_config:
        return sourced.settings
    output.line(sourced.to_text().rstrip())
    return None
