"""``importer worker``: a process that runs the service's jobs."""

from __future__ import annotations

import argparse

from importer.cli.service_options import add_settings, settings_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting."""
    add_settings(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run jobs until a signal ends it."""
    from importer.cli import show

    settings = settings_of(arguments)
    if arguments.show_config:
        show.line(settings.to_text().rstrip())
        return
    from importer.service.server import work

    work(settings.settings)
